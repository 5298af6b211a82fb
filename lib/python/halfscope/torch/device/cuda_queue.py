"""Exact counts by our own kernels on a GPU: queued behind PyTorch's own work there, and not waited for.

As `binning`, which does the same with PyTorch's operations. Needs a package that was built with CUDA.
"""

from __future__ import annotations

import torch

from halfscope import _core
from halfscope.torch.device.pytorch_bins import SIZE


def histogram_bins(tensor: torch.Tensor, format: str) -> torch.Tensor:
    bins = _zeros(SIZE, tensor)
    _core.queue_histogram(tensor, bins, _stream(tensor), format)
    return bins


def ratio_bins(weights: torch.Tensor, updates: torch.Tensor, format: str) -> torch.Tensor:
    bins = _zeros(SIZE, weights)
    _core.queue_update_ratios(weights, updates, bins, _stream(weights), format)
    return bins


def update_effect(weights: torch.Tensor, updates: torch.Tensor, format: str) -> torch.Tensor:
    numbers = _zeros(4, weights)
    _core.queue_lost_updates(weights, updates, numbers, _stream(weights), format)
    return numbers


def _zeros(size: int, like: torch.Tensor) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.int64, device=like.device)


def _stream(tensor: torch.Tensor) -> int:
    """PyTorch's current one; DLPack calls the default stream 1."""
    return torch.cuda.current_stream(tensor.device).cuda_stream or 1
