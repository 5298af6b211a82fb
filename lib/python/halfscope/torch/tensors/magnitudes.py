"""Sums of magnitudes along an axis of a tensor, in one pass of the compiled module."""

from __future__ import annotations

import math

import torch

from halfscope import _core
from halfscope.torch.tensors.elements import dense


def magnitude_sums(tensor: torch.Tensor, axis: int | None) -> torch.Tensor:
    """Sums of |x| over one of the last two axes, -1 or -2, which goes; float64. None: over all axes.

    A matrix that is turned is read where it lies. Raises Unreadable for a tensor whose elements are in no memory.
    """
    near = dense(tensor.abs() if tensor.is_complex() else tensor).to("cpu", torch.float32)
    if axis is None:
        return _summed(near.contiguous(), 1, near.numel(), 1).sum()
    if not near.is_contiguous() and near.mT.is_contiguous():
        near, axis = near.mT, -3 - axis
    near = near.contiguous()
    behind = near.shape[-1] if axis == -2 else 1
    shape = [*near.shape[:axis], *near.shape[axis:][1:]]
    return _summed(near, math.prod(near.shape[:axis]), near.shape[axis], behind).reshape(shape)


def _summed(near: torch.Tensor, outer: int, summed: int, inner: int) -> torch.Tensor:
    sums = torch.empty(outer * inner, dtype=torch.float64)
    values = near.data_ptr(), near.numel(), "f32"
    _core.magnitude_sums(values, (outer, summed, inner), (sums.data_ptr(), sums.numel(), "f64"))
    return sums
