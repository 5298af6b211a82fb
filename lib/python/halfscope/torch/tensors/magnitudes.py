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
    if axis is None:
        return magnitude_sums(torch.atleast_1d(tensor), -1).sum()
    near = dense(tensor.abs() if tensor.is_complex() else tensor).to("cpu", torch.float32)
    if near.dim() > 1 and not near.is_contiguous() and near.mT.is_contiguous():
        near, axis = near.mT, -3 - axis
    near = near.contiguous()
    outer, summed, inner = near.shape[:axis], near.shape[axis], near.shape[axis:][1:]
    sums = torch.empty([*outer, *inner], dtype=torch.float64)
    extents = math.prod(outer), summed, math.prod(inner)
    _core.magnitude_sums((near.data_ptr(), near.numel(), "f32"), extents, (sums.data_ptr(), sums.numel(), "f64"))
    return sums
