"""Formats of tensors: which storages hold numbers of a format, and which hold gradients that are to be rounded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.private import storage_key
from halfscope.torch.tensors.storages import storage_of


@dataclass
class Mark:
    """Mark of a storage: the quantizer that has rounded all of it, or None; whether a backward pass has made it."""

    reference: StorageWeakRef  # as long as it is held, no other storage has this one's address
    quantizer: str | None
    is_gradient: bool
    is_wide: bool = False  # FP32 in a model of a narrower format: not to be rounded by what uses it
    awaits_rounding: bool = False  # a gradient that an operation in a narrow format has made
    owed: list[Any] = field(default_factory=list)  # counts of casts whose tensor has no name yet

    def round_to(self, quantizer: str) -> None:
        """All of the storage was rounded."""
        self.quantizer = quantizer

    def await_rounding(self) -> None:
        self.awaits_rounding = True

    def take_owed(self) -> list[Any]:
        """Counts that whoever asks for them enters."""
        owed, self.owed = self.owed, []
        return owed


class Marks:
    """Marks of each storage."""

    UNPURGED = 1024  # so many without a search for those of storages that are gone

    def __init__(self) -> None:
        self._marks: dict[int, Mark] = {}
        self._purge_at = self.UNPURGED

    def get(self, tensor: torch.Tensor) -> Mark | None:
        return self._marks.get(storage_key(tensor))

    def set(self, tensor: torch.Tensor, quantizer: str | None, is_gradient: bool) -> Mark:
        if len(self._marks) >= self._purge_at:
            self.purge()
        mark = Mark(StorageWeakRef(storage_of(tensor)), quantizer, is_gradient)
        self._marks[storage_key(tensor)] = mark
        return mark

    def is_wide(self, tensor: torch.Tensor) -> bool:
        """Whether it is FP32 in a model of a narrower format."""
        mark = self.get(tensor)
        return mark is not None and mark.is_wide

    def set_wide(self, tensor: torch.Tensor, is_gradient: bool) -> None:
        self.set(tensor, None, is_gradient).is_wide = True

    def set_sum(self, tensor: torch.Tensor, owed: list[Any], is_wide: bool) -> None:
        """A sum of gradients; owed: counts of its terms."""
        mark = self.set(tensor, None, is_gradient=True)
        mark.owed, mark.is_wide = owed, is_wide

    def forget(self, tensor: torch.Tensor) -> None:
        self._marks.pop(storage_key(tensor), None)

    def purge(self) -> None:
        """Drops the marks of storages that are gone."""
        self._marks = {key: mark for key, mark in self._marks.items() if not mark.reference.expired()}
        self._purge_at = max(self.UNPURGED, 2 * len(self._marks))
