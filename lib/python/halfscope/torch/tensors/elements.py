"""PyTorch tensors as what the compiled module counts, and which of a model's tensors are watched."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import torch

COUNTED = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
HALF = {torch.float16: "fp16", torch.bfloat16: "bf16"}
FORMATS = {**HALF, torch.float32: "fp32", torch.float64: "fp64"}
ORDINARY = (torch.Tensor, torch.nn.Parameter)


class Unreadable(ValueError):
    """Raised for a tensor whose elements are in no memory; the text is the reason."""


def format_of(tensor: torch.Tensor) -> str:
    """The number format of the elements by halfscope's name, else by PyTorch's."""
    return FORMATS.get(tensor.dtype) or str(tensor.dtype).removeprefix("torch.")


def elements_of(given: torch.Tensor) -> torch.Tensor:
    """The tensor with this process's elements: of a DTensor its shard, without a gradient and a pending negation.

    Raises Unreadable for freed storage, for FakeTensors and other wrappers, and inside torch.func's transforms.
    """
    tensor: Any = (given.values() if given.is_nested else given).detach()
    if hasattr(tensor, "to_local"):
        if any(placement.is_partial() for placement in tensor.placements):
            raise Unreadable("a DTensor of partial sums")
        tensor = tensor.to_local()
    if hasattr(tensor, "trigger_wait"):
        tensor = tensor.trigger_wait()
    if tensor.layout is torch.strided:
        if tensor.is_neg():
            tensor = tensor.resolve_neg()
        if tensor.device.type != "meta" and not holds_elements(tensor):
            raise Unreadable(f"a {type(tensor).__name__} without memory")
    if tensor.device.type == "meta":
        raise Unreadable("a tensor on the device meta")
    return tensor if type(tensor) in ORDINARY else tensor.as_subclass(torch.Tensor)


def holds_elements(tensor: torch.Tensor) -> bool:
    """Whether the storage of a strided tensor has memory for it."""
    if tensor.numel() == 0:
        return True
    if type(tensor).__name__ == "FakeTensor":
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if tensor.data_ptr() == 0:
                return False
            return tensor.untyped_storage().nbytes() > tensor.storage_offset() * tensor.element_size()
    except RuntimeError:  # inside torch.func's transforms
        return False


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """Elements as `dense` has them, in CPU memory; no copy if they are there already."""
    return dense(tensor).cpu()


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in a type that can be counted. Raises Unreadable as `elements_of` does.

    Types of 8 bits become float32, which holds their numbers; float64 stays and is counted exactly.
    """
    tensor = elements_of(tensor)
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor if tensor.dtype in COUNTED else tensor.float()


def floats_on_host(tensor: torch.Tensor) -> torch.Tensor | None:
    """Elements in FP32 and CPU memory, of a DTensor this process's; None where there is none to read."""
    if not tensor.is_floating_point() or not tensor.numel():
        return None
    try:
        elements = on_host(tensor).float().contiguous()
    except Unreadable:
        return None
    return elements if elements.numel() else None


def all_finite(tensor: torch.Tensor) -> bool:
    """Whether all elements are finite: they are where their sum is, which needs no tensor beside it."""
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())


def address_of_floats(tensor: torch.Tensor) -> int:
    """Address at which the compiled module reads and writes a float32 tensor without gaps.

    Raises TypeError for another type, beyond whose memory it would write.
    """
    if tensor.dtype is not torch.float32:
        raise TypeError(f"{tensor.dtype} in the place of torch.float32")
    return tensor.data_ptr()


def lies_without_gaps(tensor: torch.Tensor) -> bool:
    """Whether its elements are `numel()` from `data_ptr()` on, in whatever order of the axes."""
    if tensor.is_contiguous():
        return True
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def floating(output: object) -> Iterator[torch.Tensor]:
    """The tensors of floating-point numbers in what a module returned.

    That is a tensor, or tuples, lists, dictionaries and dataclasses of them.
    """
    if isinstance(output, torch.Tensor):
        if output.is_floating_point():
            yield output
    elif isinstance(output, dict):
        for part in output.values():
            yield from floating(part)
    elif isinstance(output, (tuple, list)):
        for part in output:
            yield from floating(part)
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        for field in dataclasses.fields(output):
            yield from floating(getattr(output, field.name, None))


class Choice:
    """Which names are watched: those that match a pattern of `include` and none of `exclude` (as in a shell)."""

    def __init__(self, include: str | Iterable[str], exclude: str | Iterable[str]) -> None:
        self._include, self._exclude = _patterns("include", include), _patterns("exclude", exclude)
        self._composite = tuple(pattern for pattern in self._include if pattern.rpartition(".")[2] != "*")
        self._chosen: dict[str, bool] = {}

    def __contains__(self, name: str) -> bool:
        chosen = self._chosen.get(name)  # each watched step asks for all of them
        if chosen is None:
            chosen = self._chosen[name] = _matches(name, self._include) and not _matches(name, self._exclude)
        return chosen

    def has_layer(self, name: str, module: torch.nn.Module) -> bool:
        """Whether the module is watched; of one with layers in it a pattern must say more than "*"."""
        return name in self and (not any(module.children()) or _matches(name, self._composite))


def _patterns(argument: str, given: str | Iterable[str]) -> tuple[str, ...]:
    patterns = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise TypeError(f"watch: {argument}={given!r}; give a pattern of names, or several, as 'encoder.*'")
    return patterns


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
