"""Casts of an emulated training: rounding in place, counted by role and tensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import torch

from halfscope import UpdateCounters, _core, lost_updates
from halfscope.torch.emulate.book import Book

_NO_NAME = ""


class Caster:
    """Rounds tensors; the random numbers of stochastic rounding are a function of seed, step, tensor, role and call.

    Numbers that are rounded once more in a step, as activation checkpointing does, belong to the call that they had.
    """

    def __init__(self, book: Book, seed: int) -> None:
        self._book, self._seed = book, seed
        self._casts: dict[tuple[str, str], Any] = {}
        self._calls: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)  # in this step, by numbers' checksum
        self.see: Callable[[torch.Tensor, torch.Tensor, tuple[str, str, str]], None] | None = None  # in compared steps
        self.trail: Any = None  # for a training whose first overflow is to be described
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
        before = None if self.see is None else tensor.detach().clone()
        counts = self.round_unnamed(tensor, quantizer, role, name)
        if self.see is not None and before is not None and counts is not None:
            self.see(before, tensor, (quantizer, role, name))
        if self._book.seeks_overflow(counts) and _has_infinity(operands) and not tensor.isnan().any():
            counts = counts._replace(is_inherited=True)
        if self._book.counts_copies(role) or (tensor.dim() and self._first is not None):
            self._book.add(role, name, quantizer, counts)

    def round_unnamed(self, tensor: torch.Tensor, quantizer: str, role: str, name: str = _NO_NAME) -> Any:
        """The same, whose counts the caller gives to the book when the tensor's name is known."""
        cast = self._casts.get((quantizer, role))
        if cast is None:
            cast = self._casts[quantizer, role] = _core.Cast(quantizer, role)
        host = tensor if tensor.is_cpu else tensor.cpu()
        is_stochastic = "stochastic" in quantizer
        options = {
            "seed": self._seed, "step": self._book.step,
            "part": self._call_of(host, role, name) if is_stochastic else 0,
        }  # fmt: skip
        first = self._first if self._first and is_stochastic and host.dim() else 0
        rounded = _round_shard if first else _round
        counts = self._book.count(
            host.data_ptr(), host.numel(), quantizer,
            lambda detail: rounded(cast, host, (name, first), {**options, "detail": detail}),
        )  # fmt: skip
        if host is not tensor:
            tensor.copy_(host)
        if self.trail is not None and self.trail.is_open and counts is not None:
            self.trail.see_cast(tensor, counts.counts)
        return counts

    def round_operand(self, cast: Any, matrix: torch.Tensor, name: str, part: int) -> Any:
        """Rounds in place a matrix (..., summed axis) in CPU memory by an `_core.OperandCast`; counts, where any are.

        part: of the operand of a layer with groups, or -1.
        """
        counts = self._book.counts()
        calls = self._call_of(matrix, "operand", name) if cast.is_stochastic else 0
        return cast.round(
            matrix.data_ptr(), matrix.numel() // matrix.shape[-1], matrix.shape[-1], name, counts=counts,
            learns=counts, seed=self._seed, step=self._book.step, part=calls or part,
        )  # fmt: skip

    def _call_of(self, host: torch.Tensor, role: str, name: str) -> int:
        """How many casts of the tensor came before that of these numbers."""
        calls = self._calls[role, name]
        flat = host.detach().as_strided((host.numel(),), (1,), host.storage_offset())
        return calls.setdefault(crc32(flat.numpy()), len(calls))

    def owe(self, role: str, name: str, quantizer: str, counts: Any) -> None:
        """Enters counts of `round_unnamed`."""
        self._book.add(role, name, quantizer, counts)

    def count_update(self, parameter: str, before: torch.Tensor, update: torch.Tensor, quantizer: str) -> None:
        """Enters which of the updates of a weight its format loses."""
        if self._first is None and not self._book.counts_copies("master_weight"):
            return
        first = self._first if self._first and "stochastic" in quantizer else 0
        found = lost_updates(_behind_zeros(before, first), _behind_zeros(update, first), quantizer)
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
            self._book.add_decay(lost_updates(before.contiguous(), change.contiguous(), quantizer))

    def count(self, exact: torch.Tensor, quantizer: str, role: str, name: str) -> None:
        """Counts what rounding `exact`, a float32 tensor, to `quantizer` does, and leaves it."""
        if self._book.enabled:
            copy = exact.detach().cpu().contiguous().clone()
            self.round(copy, quantizer, role, name)


def _round(cast: Any, host: torch.Tensor, about: tuple[str, int], options: dict[str, Any]) -> Any:
    return cast.round(host.data_ptr(), host.numel(), about[0], **options)


def _round_shard(cast: Any, host: torch.Tensor, about: tuple[str, int], options: dict[str, Any]) -> Any:
    """Behind as many zeros as the whole tensor has elements before the shard: random bits belong to positions."""
    name, first = about
    flat = host.detach().as_strided((host.numel(),), (1,), host.storage_offset())
    whole = _behind_zeros(flat, first)
    counts = cast.round(whole.data_ptr(), whole.numel(), name, **options)
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
