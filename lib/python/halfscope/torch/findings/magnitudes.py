"""Magnitudes and errors of an operation's result, and sums of scores and a mask that a format makes infinite."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import torch

from halfscope._core import largest_magnitude
from halfscope.torch.device.waiting import region_of

OWN_MINIMUM = 3e38  # beyond it is FP32's own minimum, which a model in a format would have as the format's
_SMALL = 2**16  # elements that one core looks at sooner than PyTorch's threads


def largest_of(result: torch.Tensor) -> float:
    """The largest magnitude; NaN where one is NaN."""
    region = region_of(result) if result.numel() < _SMALL else None
    if region is not None:
        return largest_magnitude(region)
    low, high = map(float, torch.aminmax(result.detach()))
    return max(-low, high)


class Below(NamedTuple):
    """Elements of a sum below the format's minimum, and the magnitude of the lowest score among them."""

    elements: torch.Tensor
    depth: float


def below_minimum(terms: tuple, half_step: float) -> Below | None:
    """Scores of -half_step and less where the other term is FP32's own minimum; half_step: of the largest number."""
    for mask, scores in (terms, terms[::-1]):
        if not isinstance(mask, torch.Tensor) or not isinstance(scores, torch.Tensor):
            return None
        mask, scores = mask.detach(), scores.detach()
        elements = (mask <= -OWN_MINIMUM) & (mask > -inf) & (scores <= -half_step) & (scores > -OWN_MINIMUM)
        if bool(elements.any()):
            return Below(elements, float(-torch.where(elements, scores, 0.0).min()))
    return None


def relative_error(result: torch.Tensor, exact: torch.Tensor) -> float:
    """Norm of the difference over that of `exact`, of the elements that are finite in both; 0 where `exact` is 0."""
    a, b = result.detach().float(), exact.detach().float()
    if not bool(a.isfinite().all()) or not bool(b.isfinite().all()):
        both = a.isfinite() & b.isfinite()
        a, b = a[both], b[both]
    norm = float(torch.linalg.vector_norm(b)) if b.numel() else 0.0
    return float(torch.linalg.vector_norm(a - b)) / norm if norm else 0.0
