"""Magnitudes and errors of an operation's result."""

from __future__ import annotations

import torch

from halfscope._core import largest_magnitude
from halfscope.torch.device.waiting import region_of
from halfscope.torch.tensors.storages import stored

OWN_MINIMUM = 3e38  # beyond it is FP32's own minimum, which a model in a format would have as the format's
NEAR = 0.01  # relative difference of a loss, or of gradients, that roundings explain
_SMALL = 2**16  # elements that one core looks at sooner than PyTorch's threads


def largest_of(result: torch.Tensor) -> float:
    """The largest magnitude; NaN where one is NaN."""
    result = stored(result)
    region = region_of(result) if result.numel() < _SMALL else None
    if region is not None:
        return largest_magnitude(region)
    low, high = map(float, torch.aminmax(result.detach()))
    return max(-low, high)


def relative_error(result: torch.Tensor, exact: torch.Tensor) -> float:
    """Norm of the difference over that of `exact`, of the elements that are finite in both; 0 where `exact` is 0."""
    a, b = stored(result).detach().float(), stored(exact).detach().float()
    if not bool(a.isfinite().all()) or not bool(b.isfinite().all()):
        both = a.isfinite() & b.isfinite()
        a, b = a[both], b[both]
    norm = float(torch.linalg.vector_norm(b)) if b.numel() else 0.0
    return float(torch.linalg.vector_norm(a - b)) / norm if norm else 0.0
