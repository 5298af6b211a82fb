"""Storages of tensors: which one a tensor shares, and whether it has all of it."""

from __future__ import annotations

import torch

from halfscope.torch.tensors.elements import lies_without_gaps

storage_of = torch.Tensor.untyped_storage


def storage_key(tensor: torch.Tensor) -> int:
    """The storage's identity; views share it."""
    return int(storage_of(tensor)._cdata)


def version_of(tensor: torch.Tensor) -> int:
    """Another one after each change of the elements; always 0 of a tensor made in inference mode."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return 0


def covers_storage(tensor: torch.Tensor) -> bool:
    """Whether the tensor has every element of its storage once, in some order of its axes."""
    whole = storage_of(tensor).nbytes() == tensor.numel() * tensor.element_size()
    return whole and lies_without_gaps(tensor)
