"""Storages of tensors: which one a tensor shares, and whether it has all of it."""

from __future__ import annotations

import torch

from halfscope.torch.tensors.elements import lies_without_gaps

storage_of = torch.Tensor.untyped_storage


def covers_storage(tensor: torch.Tensor) -> bool:
    """Whether the tensor has every element of its storage once, in some order of its axes."""
    whole = storage_of(tensor).nbytes() == tensor.numel() * tensor.element_size()
    return whole and lies_without_gaps(tensor)
