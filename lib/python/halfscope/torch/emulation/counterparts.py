"""Counterparts of tensors, in copies of their storages: the same numbers, computed otherwise."""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.emulation.half_tensors import HALF
from halfscope.torch.emulation.marks import storage_key, storage_of

_UNPURGED = 64  # so many tensors without a search for those that are gone


def flat_beside(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """`values` in a copy of the storage of `tensor`, of the type of `values` and zero elsewhere."""
    flat = values.new_zeros(storage_of(tensor).nbytes() // tensor.element_size(), device=tensor.device)
    view_of(flat, tensor).copy_(values)
    return flat


def view_of(flat: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The part of a copied storage that the tensor `like` is of the storage."""
    return flat.as_strided(like.size(), like.stride(), like.storage_offset())


class Counterparts:
    """By storage, so that views share them."""

    def __init__(self) -> None:
        self._shadows: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}

    def counterpart(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The other numbers of the same step; None of a tensor that is the same in both."""
        found = self._shadows.get(storage_key(tensor)) if tensor.is_floating_point() else None
        return None if found is None else view_of(found[1], tensor)

    def _any_shadow(self, value: Any) -> bool:
        if isinstance(value, torch.Tensor):
            return storage_key(value) in self._shadows
        if isinstance(value, dict):
            return any(map(self._any_shadow, value.values()))
        return isinstance(value, (tuple, list)) and any(map(self._any_shadow, value))

    def _shadowed(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            found = self._shadows.get(storage_key(value)) if value.is_floating_point() else None
            if found is not None:
                return view_of(found[1], value)
            return value.float() if value.dtype in HALF else value
        if isinstance(value, dict):
            return {key: self._shadowed(part) for key, part in value.items()}
        if type(value) in (tuple, list):
            return type(value)(map(self._shadowed, value))
        return torch.float32 if value in HALF else value

    def _shadow_target(self, target: Any) -> None:
        """A tensor that is written in place gets a counterpart of its own first."""
        if isinstance(target, torch.Tensor) and target.is_floating_point() and storage_key(target) not in self._shadows:
            self._register(target, target.float() if target.dtype in HALF else target.clone())

    def _keep(self, result: Any, exact: Any) -> None:
        if isinstance(result, torch.Tensor) and isinstance(exact, torch.Tensor):
            if result.is_floating_point() and result.shape == exact.shape:
                self._register(result, exact)
        elif isinstance(result, (tuple, list)) and isinstance(exact, (tuple, list)):
            for part, exact_part in zip(result, exact):
                self._keep(part, exact_part)

    def _register(self, tensor: torch.Tensor, exact: torch.Tensor) -> None:
        self._shadows[storage_key(tensor)] = (StorageWeakRef(storage_of(tensor)), flat_beside(tensor, exact))


class Flats:
    """A tensor beside each storage, of the same layout; views share it."""

    def __init__(self) -> None:
        self._flats: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}
        self._purge_at = _UNPURGED

    def get(self, tensor: torch.Tensor) -> torch.Tensor | None:
        found = self._flats.get(storage_key(tensor))
        if found is None or found[0].expired():
            return None
        return view_of(found[1], tensor)

    def set(self, tensor: torch.Tensor, beside: torch.Tensor) -> None:
        if len(self._flats) >= self._purge_at:
            self._flats = {key: found for key, found in self._flats.items() if not found[0].expired()}
            self._purge_at = max(_UNPURGED, 2 * len(self._flats))
        self._flats[storage_key(tensor)] = (StorageWeakRef(storage_of(tensor)), flat_beside(tensor, beside))

    def forget(self, tensor: torch.Tensor) -> None:
        self._flats.pop(storage_key(tensor), None)
