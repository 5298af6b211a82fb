"""Counterparts of tensors, in copies of their storages: the same numbers, computed otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from halfscope.torch.operations.operators import writes
from halfscope.torch.private import storage_key, with_values
from halfscope.torch.tensors.elements import HALF
from halfscope.torch.tensors.storages import covers_storage, place_of_elements, storage_of, stored
from halfscope.torch.tensors.trees import map_tensors, tensors

_UNPURGED = 64  # so many tensors without a search for those that are gone


def flat_beside(tensor: torch.Tensor, values: torch.Tensor, is_new: bool = False) -> torch.Tensor:
    """`values` in a copy of the storage of `tensor`, of the type of `values` and zero elsewhere.

    is_new: nobody else has the memory of `values`, which is kept where it lies as the tensor does.
    """
    tensor, values = stored(tensor), stored(values)
    elements = storage_of(tensor).nbytes() // tensor.element_size()
    lies_alike = place_of_elements(tensor)[1:] == place_of_elements(values)[1:] and values.device == tensor.device
    if is_new and lies_alike and elements == values.numel() and covers_storage(values):
        return values.as_strided((elements,), (1,))
    flat = values.new_zeros(elements, device=tensor.device)
    view_of(flat, tensor).copy_(values)
    return flat


def view_of(flat: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """The part of a copied storage that the tensor `like` is of the storage."""
    if like.is_sparse:
        return with_values(like, view_of(flat, stored(like)))
    return flat.as_strided(like.size(), like.stride(), like.storage_offset())


def without_writes(func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """Arguments for another run of an operator: tensors that it writes to are copies."""
    return map_arguments(
        func, (args, kwargs), lambda value: map_tensors(value, torch.Tensor.clone), lambda value: value
    )


def map_arguments(
    func: Any, given: tuple[tuple, dict[str, Any]], written: Callable[[Any], Any], read: Callable[[Any], Any]
) -> tuple[tuple, dict[str, Any]]:
    """The arguments that an operator writes to and those that it reads alone, each kind changed."""
    changed = writes(func)
    change = lambda key, value: (written if key in changed else read)(value)  # noqa: E731
    args, kwargs = given
    return tuple(map(change, range(len(args)), args)), {key: change(key, value) for key, value in kwargs.items()}


class Flats:
    """A tensor beside each storage, of the same layout, as long as the storage lives; views share it."""

    def __init__(self) -> None:
        self._flats: dict[int, tuple[StorageWeakRef, torch.Tensor]] = {}
        self._purge_at = _UNPURGED

    def __contains__(self, tensor: torch.Tensor) -> bool:
        return storage_key(tensor) in self._flats

    def get(self, tensor: torch.Tensor) -> torch.Tensor | None:
        found = self._flats.get(storage_key(tensor))
        return None if found is None else view_of(found[1], tensor)

    def set(self, tensor: torch.Tensor, beside: torch.Tensor, is_new: bool = False) -> None:
        """is_new: nobody else has the memory of `beside`."""
        if len(self._flats) >= self._purge_at:
            self._flats = {key: found for key, found in self._flats.items() if not found[0].expired()}
            self._purge_at = max(_UNPURGED, 2 * len(self._flats))
        self._flats[storage_key(tensor)] = StorageWeakRef(storage_of(tensor)), flat_beside(tensor, beside, is_new)

    def forget(self, tensor: torch.Tensor) -> None:
        self._flats.pop(storage_key(tensor), None)


class Counterparts(Flats):
    """Counterparts by storage, so that views share them."""

    def counterpart(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """The other numbers of the same step; None of a tensor that is the same in both."""
        return self.get(tensor) if tensor.is_floating_point() else None

    def has_any(self, value: Any) -> bool:
        """Whether a tensor among arguments has a counterpart."""
        if isinstance(value, torch.Tensor):
            return value in self
        if isinstance(value, dict):
            return any(map(self.has_any, value.values()))
        return isinstance(value, (tuple, list)) and any(map(self.has_any, value))

    def beside(self, value: Any) -> Any:
        """Arguments with counterparts in place of their tensors, FP32 in place of 16 bits."""
        if isinstance(value, torch.Tensor):
            known = self.counterpart(value)
            if known is not None:
                return known
            return value.float() if value.dtype in HALF else value
        if isinstance(value, dict):
            return {key: self.beside(part) for key, part in value.items()}
        if type(value) in (tuple, list):
            return type(value)(map(self.beside, value))
        return torch.float32 if value in HALF else value

    def register_written(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        """Floating-point numbers that an operator writes to get a counterpart of their own first."""
        map_arguments(func, (args, kwargs), self._register_target, lambda value: value)

    def _register_target(self, target: Any) -> None:
        for tensor in tensors(target):
            if tensor.is_floating_point() and tensor not in self:
                self.set(tensor, tensor.float() if tensor.dtype in HALF else tensor.clone(), is_new=True)

    def own(self, written: Any) -> Any:
        """An argument that is written to: its counterpart, or a copy that is thrown away, as of integers."""

        def own(tensor: torch.Tensor) -> torch.Tensor:
            known = self.counterpart(tensor)
            return tensor.clone() if known is None else known

        return map_tensors(written, own)

    def keep(self, result: Any, exact: Any, given: Any) -> None:
        """exact: becomes the counterpart of the result; given: what it was computed from, whose memory it may have."""
        others = {storage_key(tensor) for tensor in tensors(given)}
        for part, own in zip(tensors(result), tensors(exact)):
            if part.is_floating_point() and part.shape == own.shape:
                self.set(part, own, is_new=storage_key(own) not in others)
