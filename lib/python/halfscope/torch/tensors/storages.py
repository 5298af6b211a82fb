"""Storages of tensors: which one a tensor shares, and whether it has all of it."""

from __future__ import annotations

from typing import Generic, TypeVar

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.private import sparse_values, storage_key
from halfscope.torch.tensors.elements import lies_without_gaps

Note = TypeVar("Note")


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage:
    """The memory of its elements: a sparse tensor has that of its values."""
    return stored(tensor).untyped_storage()


def stored(tensor: torch.Tensor) -> torch.Tensor:
    """The elements that are in memory: a sparse tensor's values, any other tensor itself."""
    return tensor if tensor.layout is torch.strided else sparse_values(tensor)


def place_of_elements(tensor: torch.Tensor) -> tuple:
    """Storage and the view of it: equal for two tensors whose elements are the same memory in the same order."""
    if tensor.layout is not torch.strided:
        return storage_key(tensor), tuple(tensor.shape)
    return storage_key(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def covers_storage(tensor: torch.Tensor) -> bool:
    """Whether the tensor, or a sparse one's values, has each element of its storage once, in some order of its axes."""
    tensor = stored(tensor)
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return whole and lies_without_gaps(tensor)


class StorageMap(Generic[Note]):
    """A note on each storage, as long as it lives."""

    UNPURGED = 4096  # so many without a search for storages that are gone

    def __init__(self) -> None:
        # With a reference: while it is held no other storage has this one's key.
        self._notes: dict[int, tuple[Note, StorageWeakRef]] = {}
        self._purge_at = self.UNPURGED

    def get(self, tensor: torch.Tensor) -> Note | None:
        """None of a storage without a note."""
        entry = self._notes.get(storage_key(tensor))
        return None if entry is None else entry[0]

    def set(self, tensor: torch.Tensor, note: Note) -> None:
        if len(self._notes) >= self._purge_at:
            self._notes = {key: entry for key, entry in self._notes.items() if not entry[1].expired()}
            self._purge_at = max(self.UNPURGED, 2 * len(self._notes))
        self._notes[storage_key(tensor)] = (note, StorageWeakRef(storage_of(tensor)))
