"""Tensors in arguments and results, inside of lists and mappings too."""

from __future__ import annotations

from typing import Any

import torch


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [tensor for part in parts for tensor in tensors_in(part)]


def floats_in(value: Any) -> list[torch.Tensor]:
    """The float32 tensors."""
    return [tensor for tensor in tensors_in(value) if tensor.dtype is torch.float32]


def lies_in_memory(tensor: torch.Tensor) -> bool:
    """Whether elements lie at one address: shapes without numbers, zeros without memory, sparse ones have none."""
    return tensor.layout is torch.strided and not tensor.is_meta and tensor.data_ptr() != 0
