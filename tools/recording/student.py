"""Student's t distribution, without packages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import exp, lgamma, pi
from statistics import stdev

SLICES = 2000  # in Simpson's rule


def half_interval(values: Sequence[float]) -> float:
    """Half the 95 % interval of the mean of two values or more."""
    return student_95(len(values) - 1) * stdev(values) / len(values) ** 0.5


@cache
def student_95(degrees: int) -> float:
    """The number that 95 % of the magnitudes of a Student's t of so many degrees of freedom lie below."""
    low, high = 1.9, 13.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if _share_within(middle, degrees) < 0.95 else (low, middle)
    return low


def _share_within(limit: float, degrees: int) -> float:
    norm = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / (degrees * pi) ** 0.5

    def density(x: float) -> float:
        return norm * (1 + x * x / degrees) ** (-(degrees + 1) / 2)

    step = limit / SLICES
    odd = sum(density(place * step) for place in range(1, SLICES, 2))
    even = sum(density(place * step) for place in range(2, SLICES, 2))
    return 2 * step / 3 * (density(0) + density(limit) + 4 * odd + 2 * even)
