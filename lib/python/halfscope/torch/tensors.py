"""PyTorch tensors as what the compiled module counts, and which of a model's tensors are watched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import torch

COUNTED = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """As `dense`, in CPU memory; no copy where the elements are there already."""
    return dense(tensor).cpu()


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The elements in a type that can be counted.

    Types of 8 bits become float32, which holds their numbers; float64 stays and is counted exactly.
    """
    tensor = tensor.detach()
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    return tensor if tensor.dtype in COUNTED else tensor.float()


def floating(output: object) -> Iterator[torch.Tensor]:
    """The tensors of floating-point numbers in what a module returned: a tensor, or tuples, lists and dictionaries."""
    if isinstance(output, torch.Tensor):
        if output.is_floating_point():
            yield output
    elif isinstance(output, dict):
        for part in output.values():
            yield from floating(part)
    elif isinstance(output, (tuple, list)):
        for part in output:
            yield from floating(part)


class Choice:
    """Which names are watched: those that match a pattern of `include` and none of `exclude` (as in a shell)."""

    def __init__(self, include: str | Iterable[str], exclude: str | Iterable[str]) -> None:
        self._include, self._exclude = _patterns(include), _patterns(exclude)

    def __contains__(self, name: str) -> bool:
        return _matches(name, self._include) and not _matches(name, self._exclude)


def _patterns(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
