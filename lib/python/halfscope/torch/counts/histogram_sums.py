"""Sums of histograms, and loss scales as powers of two."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, log2

from halfscope import Histogram


def power_of_two(scale: float) -> float:
    """The nearest power of two: binades cannot be shifted by a fraction. 1 of a scale that is infinite, or was."""
    return 2.0 ** round(log2(scale)) if 0 < scale < inf else 1.0


def together(histograms: Iterable[Histogram], format: str) -> Histogram:
    """The counts of several, all for `format`, as one histogram."""
    total = Histogram(format=format)
    for found in histograms:
        total.merge(found)
    return total
