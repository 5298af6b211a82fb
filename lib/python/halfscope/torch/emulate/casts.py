"""Casts of an emulated training: rounding in place, counted by role and tensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

from halfscope import UpdateCounters, _core
from halfscope.torch.device.arithmetic import Host, device_of
from halfscope.torch.emulate.book import Book
from halfscope.torch.emulate.step import Step
from halfscope.torch.events.ran import Cast
from halfscope.torch.private import without_modes
from halfscope.torch.tensors.storages import stored

_NO_NAME = ""


class Caster:
    """Rounds tensors; the random numbers of stochastic rounding are a function of seed, step, tensor, role and call.

    Numbers that are rounded once more in a step, as activation checkpointing does, belong to the call that they had.
    """

    def __init__(self, book: Book, seed: int, step: Step) -> None:
        """step: its observers are told of each cast that is counted."""
        self._book, self._seed, self.step = book, seed, step
        self._casts: dict[tuple[str, str], Any] = {}
        self._calls: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)  # in this step, by numbers' checksum
        self._first: int | None = None  # first of a shard's elements in the whole tensor; None for whole tensors

    @contextmanager
    def shard(self, first: int | None) -> Iterator[None]:
        """Casts of shards that begin with element `first` of the whole tensor, whose random numbers they get.

        Tensors without axes are whole. Each rank counts its shards; what all ranks have alike the first one counts.
        """
        before, self._first = self._first, first
        try:
            yield
        finally:
            self._first = before

    @property
    def counts(self) -> bool:
        """Whether a cast is counted now: neither in an evaluation nor where numbers are computed again."""
        return self._book.counts()

    def begin_step(self) -> None:
        self._calls.clear()

    def round(self, tensor: torch.Tensor, quantizer: str, role: str, name: str, operands: Any = ()) -> None:
        """Rounds in place a float32 tensor that lies without gaps; `operands` are what it was computed from."""
        before = _copy(tensor) if self.step.plan.has_numbers_before else None
        counts = self._round(tensor, quantizer, role, name)
        if counts is not None and self.step.plan.of_casts:
            self.step.cast(Cast(role, name, quantizer, counts.counts, tensor, before=before))
        self._enter(tensor, (role, name, quantizer), counts, operands)

    def round_copy(self, original: torch.Tensor, copy: torch.Tensor, quantizer: str, role: str, name: str) -> None:
        """Rounds a copy of a tensor that is somebody else's."""
        counts = self._round(copy, quantizer, role, name)
        if counts is not None and self.step.plan.of_casts:
            before = original.detach() if self.step.plan.has_numbers_before else None
            self.step.cast(Cast(role, name, quantizer, counts.counts, copy, original, before))
        self._enter(copy, (role, name, quantizer), counts, (original,))

    def _enter(self, tensor: torch.Tensor, about: tuple[str, str, str], counts: Any, operands: Any) -> None:
        """Enters counts into the book; about: role, name and quantizer."""
        if self._book.seeks_overflow(counts) and _has_infinity(operands) and not tensor.isnan().any():
            counts = counts._replace(is_inherited=True)
        if self._book.counts_copies(about[0]) or (tensor.dim() and self._first is not None):
            self.owe(*about, counts)

    def round_unnamed(self, tensor: torch.Tensor, quantizer: str, role: str) -> Any:
        """Rounds in place; the caller enters the counts by `owe` when the tensor's name is known."""
        counts = self._round(tensor, quantizer, role, _NO_NAME)
        if counts is not None and self.step.plan.of_casts:
            self.step.cast(Cast(role, _NO_NAME, quantizer, counts.counts, tensor))
        return counts

    def _round(self, tensor: torch.Tensor, quantizer: str, role: str, name: str) -> Any:
        cast = self._casts.get((quantizer, role))
        if cast is None:
            cast = self._casts[quantizer, role] = _core.Cast(quantizer, role)
        tensor = stored(tensor)
        device = device_of(tensor)
        near = device.near(tensor)
        is_stochastic = "stochastic" in quantizer
        options = {
            "seed": self._seed, "step": self._book.step,
            "part": self._call_of(device, near, role, name) if is_stochastic else 0,
        }  # fmt: skip
        first = self._first if self._first and is_stochastic and near.dim() else 0
        rounded = partial(_round_shard, device, first) if first else device.cast
        counts = self._book.count(
            near, device, quantizer, lambda detail: rounded(cast, near, name, {**options, "detail": detail})
        )
        device.write(near, tensor)
        return counts

    def round_operand(self, cast: Any, matrix: torch.Tensor, name: str, part: int) -> Any:
        """Rounds in place a matrix (..., summed axis) near its device by an `_core.OperandCast`; counts, where any are.

        part: of the operand of a layer with groups, or -1.
        """
        counts, device = self._book.counts(), device_of(matrix)
        calls = self._call_of(device, matrix, "operand", name) if cast.is_stochastic else 0
        return device.cast_blocks(
            cast, matrix, name,
            {"counts": counts, "learns": counts, "seed": self._seed, "step": self._book.step, "part": calls or part},
        )  # fmt: skip

    def _call_of(self, device: Host, near: torch.Tensor, role: str, name: str) -> int:
        """How many casts of the tensor came before that of these numbers."""
        calls = self._calls[role, name]
        return calls.setdefault(device.checksum(near), len(calls))

    def owe(self, role: str, name: str, quantizer: str, counts: Any) -> None:
        """Enters counts of `round_unnamed`."""
        first = self._book.add(role, name, quantizer, counts)
        if first is not None and self.step.plan.of_casts:
            self.step.overflowed(Cast(role, name, quantizer, counts.counts), first)

    def count_update(self, parameter: str, before: torch.Tensor, update: torch.Tensor, quantizer: str) -> None:
        """Enters which of the updates of a weight its format loses."""
        if self._first is None and not self._book.counts_copies("master_weight"):
            return
        first = self._first if self._first and "stochastic" in quantizer else 0
        found = device_of(before).updates(_behind_zeros(before, first), _behind_zeros(update, first), quantizer)
        if first:
            found = UpdateCounters(
                elements=found.elements - first, nonzero=found.nonzero, lost=found.lost,
                applied_over_intended=found.applied_over_intended,
            )  # fmt: skip
        self._book.add_update(parameter, found)

    def count_decay(self, before: torch.Tensor, decayed: torch.Tensor, quantizer: str) -> None:
        """Enters which weights their format keeps from decaying; `decayed` is not rounded yet."""
        if self._first is None and self._book.shards is None:
            change = (decayed.double() - before.double()).float()
            self._book.add_decay(device_of(before).updates(before, change, quantizer))

    def count(self, exact: torch.Tensor, quantizer: str, role: str, name: str) -> None:
        """Counts what rounding `exact`, a float32 tensor, to `quantizer` does, and leaves it."""
        if self._book.enabled:
            copy = device_of(exact).near(exact.detach()).contiguous().clone()
            self.round(copy, quantizer, role, name)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    """Without the mode, which is on where a hook rounds a gradient, and would round it for this operation."""
    with without_modes():
        return tensor.detach().clone()


def _round_shard(device: Host, first: int, cast: Any, near: torch.Tensor, name: str, options: dict[str, Any]) -> Any:
    """Behind as many zeros as the whole tensor has elements before the shard: random bits belong to positions."""
    flat = near.detach().as_strided((near.numel(),), (1,), near.storage_offset())
    whole = _behind_zeros(flat, first)
    counts = device.cast(cast, whole, name, options)
    flat.copy_(whole[first:])
    if counts is None:
        return None
    names = ("nonfinite", "flushed", "subnormal", "overflow", "max_abs")
    return SimpleNamespace(
        elements=counts.elements - first, zeros=counts.zeros - first, **{key: getattr(counts, key) for key in names}
    )


def _behind_zeros(tensor: torch.Tensor, zeros: int) -> torch.Tensor:
    return torch.cat([tensor.new_zeros(zeros), tensor.flatten()]) if zeros else tensor


def _has_infinity(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() and bool(value.isinf().any())
    if isinstance(value, (tuple, list)):
        return any(map(_has_infinity, value))
    return isinstance(value, float) and abs(value) == float("inf")
