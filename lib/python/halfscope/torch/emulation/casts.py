"""Casts of an emulated training: rounding in place, counted by role and tensor."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch

from halfscope import _core
from halfscope.torch.emulation.book import Book

_NO_NAME = ""


class Caster:
    """Rounds tensors; the random numbers of stochastic rounding are a function of seed, step, tensor, role and call."""

    def __init__(self, book: Book, seed: int) -> None:
        self._book, self._seed = book, seed
        self._casts: dict[tuple[str, str], Any] = {}
        self._calls: dict[tuple[str, str], int] = defaultdict(int)  # in this step, by role and tensor
        self._identities: dict[str, bool] = {}

    def begin_step(self) -> None:
        self._calls.clear()

    def round(self, tensor: torch.Tensor, quantizer: str, role: str, name: str) -> None:
        """Rounds in place a float32 tensor that lies without gaps."""
        counts = self.round_unnamed(tensor, quantizer, role, name)
        self._book.add(role, name, quantizer, counts)

    def round_unnamed(self, tensor: torch.Tensor, quantizer: str, role: str, name: str = _NO_NAME) -> Any:
        """The same, whose counts the caller gives to the book when the tensor's name is known."""
        call = self._calls[role, name]
        self._calls[role, name] += 1
        cast = self._casts.get((quantizer, role))
        if cast is None:
            cast = self._casts[quantizer, role] = _core.Cast(quantizer, role)
        host = tensor if tensor.is_cpu else tensor.cpu()
        counts = self._book.count(
            host.data_ptr(), host.numel(), quantizer,
            lambda detail: cast.round(
                host.data_ptr(), host.numel(), name, detail=detail, seed=self._seed, step=self._book.step, part=call
            ),
        )  # fmt: skip
        if host is not tensor:
            tensor.copy_(host)
        return counts

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
