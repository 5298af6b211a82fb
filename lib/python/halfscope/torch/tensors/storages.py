"""Storages of tensors: which one a tensor shares, and whether it has all of it."""

from __future__ import annotations

import torch

from halfscope.torch.private import sparse_values
from halfscope.torch.tensors.elements import lies_without_gaps


def storage_of(tensor: torch.Tensor) -> torch.UntypedStorage:
    """The memory of its elements: a sparse tensor has that of its values."""
    return stored(tensor).untyped_storage()


def stored(tensor: torch.Tensor) -> torch.Tensor:
    """The elements that are in memory: a sparse tensor's values, any other tensor itself."""
    return tensor if tensor.layout is torch.strided else sparse_values(tensor)


def covers_storage(tensor: torch.Tensor) -> bool:
    """Whether the tensor, or a sparse one's values, has each element of its storage once, in some order of its axes."""
    tensor = stored(tensor)
    whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return whole and lies_without_gaps(tensor)
