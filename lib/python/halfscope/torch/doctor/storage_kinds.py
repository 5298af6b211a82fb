"""Kind of the numbers in each storage of a run: of the format, of FP32, or in FP32 for a trial."""

from __future__ import annotations

from enum import Enum

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.private import storage_key
from halfscope.torch.tensors.storages import storage_of


class Numbers(Enum):
    """Numbers that a storage holds; all storages are float32."""

    NARROW = "numbers of the format"
    WIDE = "FP32, as the script has it"
    LIFTED = "FP32 for a trial; a call outside of the trial's region casts it down"
    STATE = "FP32 for a trial of weights and state; every call casts it down, an update keeps it"


class StorageKinds:
    """Kind of numbers of each storage, as long as it lives."""

    UNPURGED = 4096  # so many without a search for storages that are gone

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[Numbers, StorageWeakRef]] = {}
        self._purge_at = self.UNPURGED

    def get(self, tensor: torch.Tensor) -> Numbers | None:
        """None of a storage that no operation of the run has made or met."""
        entry = self._kinds.get(storage_key(tensor))
        return None if entry is None else entry[0]

    def set(self, tensor: torch.Tensor, kind: Numbers) -> None:
        if len(self._kinds) >= self._purge_at:
            self._kinds = {key: entry for key, entry in self._kinds.items() if not entry[1].expired()}
            self._purge_at = max(self.UNPURGED, 2 * len(self._kinds))
        self._kinds[storage_key(tensor)] = (kind, StorageWeakRef(storage_of(tensor)))
