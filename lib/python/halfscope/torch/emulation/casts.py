"""Casts of an emulated training: rounding in place, counted by role and tensor."""

from __future__ import annotations

from collections import defaultdict
from typing import Any
from zlib import crc32

import torch

from halfscope import _core
from halfscope.torch.emulation.book import Book

_NO_NAME = ""


class Caster:
    """Rounds tensors; the random numbers of stochastic rounding are a function of seed, step, tensor, role and call.

    Numbers that are rounded once more in a step, as activation checkpointing does, belong to the call that they had.
    """

    def __init__(self, book: Book, seed: int) -> None:
        self._book, self._seed = book, seed
        self._casts: dict[tuple[str, str], Any] = {}
        self._calls: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)  # in this step, by numbers' checksum

    def begin_step(self) -> None:
        self._calls.clear()

    def round(self, tensor: torch.Tensor, quantizer: str, role: str, name: str, operands: Any = ()) -> None:
        """Rounds in place a float32 tensor that lies without gaps; `operands` are what it was computed from."""
        counts = self.round_unnamed(tensor, quantizer, role, name)
        if self._book.seeks_overflow(counts) and _has_infinity(operands) and not tensor.isnan().any():
            counts = counts._replace(is_inherited=True)
        self._book.add(role, name, quantizer, counts)

    def round_unnamed(self, tensor: torch.Tensor, quantizer: str, role: str, name: str = _NO_NAME) -> Any:
        """The same, whose counts the caller gives to the book when the tensor's name is known."""
        cast = self._casts.get((quantizer, role))
        if cast is None:
            cast = self._casts[quantizer, role] = _core.Cast(quantizer, role)
        host = tensor if tensor.is_cpu else tensor.cpu()
        call = self._call_of(host, role, name) if "stochastic" in quantizer else 0
        counts = self._book.count(
            host.data_ptr(), host.numel(), quantizer,
            lambda detail: cast.round(
                host.data_ptr(), host.numel(), name, detail=detail, seed=self._seed, step=self._book.step, part=call
            ),
        )  # fmt: skip
        if host is not tensor:
            tensor.copy_(host)
        return counts

    def _call_of(self, host: torch.Tensor, role: str, name: str) -> int:
        """How many casts of the tensor came before that of these numbers."""
        calls = self._calls[role, name]
        flat = host.detach().as_strided((host.numel(),), (1,), host.storage_offset())
        return calls.setdefault(crc32(flat.numpy()), len(calls))

    def owe(self, role: str, name: str, quantizer: str, counts: Any) -> None:
        """Enters counts of `round_unnamed`."""
        self._book.add(role, name, quantizer, counts)

    def count_update(self, parameter: str, counters: Any) -> None:
        """Enters which of the updates of a weight its format has lost."""
        self._book.add_update(parameter, counters)

    def count(self, exact: torch.Tensor, quantizer: str, role: str, name: str) -> None:
        """Counts what rounding `exact`, a float32 tensor, to `quantizer` does, and leaves it."""
        if self._book.enabled:
            copy = exact.detach().cpu().contiguous().clone()
            self.round(copy, quantizer, role, name)


def _has_infinity(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.is_floating_point() and bool(value.isinf().any())
    if isinstance(value, (tuple, list)):
        return any(map(_has_infinity, value))
    return isinstance(value, float) and abs(value) == float("inf")
