"""Finiteness of many tensors together: one pass over memory on the host, one wait for devices."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from halfscope import _core
from halfscope.torch.device.waiting import region_of


def are_finite(tensors: Iterable[torch.Tensor]) -> bool:
    """Whether all elements of strided tensors are finite."""
    given = [_real(tensor.detach()) for tensor in tensors if tensor.numel()]
    regions = [region_of(tensor) for tensor in given]
    if not _core.all_finite([region for region in regions if region is not None]):
        return False
    others = [tensor for tensor, region in zip(given, regions) if region is None]
    if not others:
        return True
    sums = [tensor.sum(dtype=torch.float32).to(others[0].device) for tensor in others]
    if bool(torch.stack(sums).isfinite().all()):
        return True
    return all(bool(tensor.isfinite().all()) for tensor in others)  # a sum of finite numbers may overflow


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
