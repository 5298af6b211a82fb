"""`load_block`: a block of a checkpoint, with the loss by which its backward pass is that of the whole run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from halfscope.torch.one_block.block_dump import BlockDump, read_dump
from halfscope.torch.one_block.checkpoint import Checkpoint
from halfscope.torch.private import without_function_modes


class LoadedBlock(torch.nn.Module):
    """A block alone, its modules named as in the whole model: `check(block, block.loss)`.

    `block()` computes the block of the saved call; `block(*args, **kwargs)` that of another one.
    """

    def __init__(self, name: str, block: torch.nn.Module, dump: BlockDump | None = None) -> None:
        super().__init__()
        outer: torch.nn.Module = self
        *above, own = (name or "model").split(".")
        for part in above:
            outer.add_module(part, torch.nn.Module())
            outer = outer.get_submodule(part)
        outer.add_module(own, block)
        self._path, self._magnitude = ".".join([*above, own]), 0.0
        self._dump = None if dump is None else _widened(dump)
        self.train(dump is None or dump.training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The block's output."""
        if not args and not kwargs:
            with without_function_modes():  # the copies are no call of the block's
                args, kwargs = _each(self._saved.args, _fresh), _each(self._saved.kwargs, _fresh)
        return self.get_submodule(self._path)(*args, **kwargs)

    def loss(self) -> torch.Tensor:
        """Sum of the output times its saved gradient, whose backward pass is that of the whole run, and a constant.

        The sum alone may cancel to any number; the constant, the sum of its terms' magnitudes, keeps its digits.
        """
        return sum((_products(*pair).sum() for pair in self._pairs(self())), self._magnitude)

    @property
    def _saved(self) -> BlockDump:
        if self._dump is None:
            raise ValueError("load_block: the block has no dump; give one: load_block(checkpoint, name, dump)")
        return self._dump

    def _pairs(self, output: Any) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Raises ValueError where the saved gradient is not of this output."""
        gradient = self._saved.gradient
        if isinstance(gradient, torch.Tensor) and isinstance(output, (tuple, list)):
            output = output[0]  # a dump by hand has the gradient of the first one
        found = list(_matched(output, gradient, "output"))
        if not found:
            raise ValueError("the dump has no gradient of the output")
        return iter(found)

    def run_saved(self) -> None:
        """Runs the saved call once, without gradients. Raises ValueError where it is none of this block's."""
        own = {name: list(weight.shape) for name, weight in self.get_submodule(self._path).named_parameters()}
        for name, shape in self._saved.shapes.items():
            if name in own and own[name] != shape:
                raise ValueError(f"its block's {name} was {tuple(shape)}, and the checkpoint's is {tuple(own[name])}")
        with torch.no_grad():
            try:
                output = self()
            except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                raise ValueError(f"the block does not run on its arguments: {reason}") from None
            magnitude = sum(float(_products(*pair).abs().nansum()) for pair in self._pairs(output))
            self._magnitude = magnitude if math.isfinite(magnitude) else 0.0


def load_block(checkpoint: str | Path, module: str, dump: str | Path | None = None) -> LoadedBlock:
    """Loads one module of a checkpoint in FP32, and a step that `capture` saved; no other weight is read.

    `check(block, block.loss)`, `diagnose(block, block.loss)` and `emulate(block, ...)` then look at this block alone,
    on a CPU, in the names of the whole model. The loss is the sum of the output times its saved gradient,
    and a constant.

    checkpoint: a folder that `save_pretrained` of transformers wrote.
    module: a name of the model's, such as "model.layers.17".
    dump: a file of `capture`, or of `torch.save((args, kwargs, gradient), path)`; without it the block has no loss, and
        is called with arguments of your own. It is run once, without gradients, to see that it fits.

    Raises ImportError without the package transformers; ValueError, in one line that names the file, for a folder that
    holds no checkpoint, a name that the model does not have, a missing or broken shard, and a dump of another block.
    """
    given = None if dump is None else read_dump(dump)
    if given is not None and given.module and given.module != module:
        raise ValueError(f"{dump}: is a dump of '{given.module}', and '{module}' was asked for")
    return block_of(Checkpoint(Path(checkpoint)), module, given, dump)


def block_of(checkpoint: Checkpoint, module: str, dump: BlockDump | None, path: str | Path | None) -> LoadedBlock:
    """A module of a checkpoint. Raises ValueError, naming `path`, where the dump is of another one."""
    block = LoadedBlock(module, checkpoint.module(module, "" if dump is None else dump.attention), dump)
    if dump is not None:
        try:
            block.run_saved()
        except ValueError as reason:
            raise ValueError(f"{path}: does not fit '{module}' of {checkpoint.folder}: {reason}") from None
    return block


def _widened(dump: BlockDump) -> BlockDump:
    """Arguments in FP32, and the gradient in FP64: a door that rounds the step to a format rounds FP32 alone.

    The gradient is rounded when it arrives at the block, times the loss scale.
    """
    args, kwargs = (_each(given, partial(_as_type, kind=torch.float32)) for given in (dump.args, dump.kwargs))
    return replace(dump, args=args, kwargs=kwargs, gradient=_each(dump.gradient, partial(_as_type, kind=torch.float64)))


def _as_type(value: Any, kind: torch.dtype) -> Any:
    if isinstance(value, torch.dtype):
        return kind if value.is_floating_point else value
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.detach().to(kind).requires_grad_(value.requires_grad)


def _fresh(value: Any) -> Any:
    """A tensor of a new graph, which an operation in place may change."""
    if not isinstance(value, torch.Tensor):
        return value
    tensor = value.detach()
    return tensor.requires_grad_().clone() if value.requires_grad else tensor.clone()


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same arguments, with each tensor, number and other value changed."""
    if isinstance(value, (tuple, list)):
        return type(value)(_each(part, change) for part in value)
    if isinstance(value, dict):
        return {key: _each(part, change) for key, part in value.items()}
    return change(value)


def _products(output: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    return output * gradient


def _matched(output: Any, gradient: Any, place: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Tensors of an output with their gradients; parts without one are left out."""
    if gradient is None:
        return
    if isinstance(gradient, torch.Tensor):
        if not isinstance(output, torch.Tensor) or output.shape != gradient.shape:
            is_one = isinstance(output, torch.Tensor)
            told = tuple(output.shape) if is_one else f"a {type(output).__name__}"
            raise ValueError(f"the gradient of the {place} is {tuple(gradient.shape)}, and the {place} is {told}")
        yield output, gradient
        return
    is_mapping = isinstance(gradient, dict)
    for key, part in gradient.items() if is_mapping else enumerate(gradient):
        try:
            own = None if isinstance(output, torch.Tensor) else output[key]
        except (LookupError, TypeError):
            own = None
        if own is None and part is not None:
            raise ValueError(f"the {place} has no part {key!r}, of which the dump has a gradient")
        yield from _matched(own, part, f"{place}.{key}")
