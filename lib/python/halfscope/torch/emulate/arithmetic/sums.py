"""Sums of terms in a policy's order of sums."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.device.arithmetic import device_of


def compute(operation: str, model: str, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor | None:
    """sum and mean of float32 along any axes, unrounded; None for what they do not cover."""
    if operation not in ("sum", "mean") or kwargs.get("dtype") not in (None, torch.float32) or "out" in kwargs:
        return None
    tensor = args[0]
    if not isinstance(tensor, torch.Tensor) or tensor.dtype is not torch.float32 or not tensor.numel():
        return None
    axes = args[1] if len(args) > 1 else kwargs.get("dim")
    if axes is not None and not isinstance(axes, (list, tuple, int)):
        return None
    keeps = bool(args[2] if len(args) > 2 else kwargs.get("keepdim", False))
    summed = _axes(axes, tensor.dim())
    terms = 1
    for axis in summed:
        terms *= tensor.shape[axis]
    rest = [axis for axis in range(tensor.dim()) if axis not in summed]
    shape = [tensor.shape[axis] for axis in rest]
    rows, device = tensor.detach().permute([*summed, *rest]).reshape(terms, -1), device_of(tensor)
    total = device.away(device.sum(rows, model).reshape(shape), tensor)
    if keeps:
        total = total.reshape([1 if axis in summed else tensor.shape[axis] for axis in range(tensor.dim())])
    return total / terms if operation == "mean" else total


def _axes(given: Any, count: int) -> list[int]:
    if given is None or (isinstance(given, (list, tuple)) and not given):
        return list(range(count))
    several = [given] if isinstance(given, int) else list(given)
    return sorted(axis % count for axis in several) if count else []
