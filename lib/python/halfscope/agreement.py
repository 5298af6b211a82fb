"""Differences of two arrays beside what counted roundings to nearest do to each element, and to all together."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfscope.formats import Floats, Format, label
from halfscope.roundoff import Z_LIMIT, distinct_rows, flat_pair

_REFERENCE = 8 * 2.0**-24  # relative, of an expected number that was computed in FP32


@dataclass(frozen=True)
class Agreement:
    """Comparison of numbers with expected ones, beside what counted roundings do."""

    elements: int
    worst: float  # the largest difference, over the most that the roundings can do
    place: tuple[int, ...]  # place of that element
    rms: float  # root of the mean square, over that of the roundings
    rms_z: float
    factor: float  # relative difference that all elements have in common
    factor_z: float
    offset: float  # difference that they have in common
    offset_z: float

    @property
    def is_round_off(self) -> bool:
        return not self.reasons()

    def reasons(self) -> list[str]:
        """The ways in which this is no round-off, in words."""
        found = []
        if self.factor_z > Z_LIMIT:
            found.append(f"a common factor of {1 + self.factor:.6g}, {self.factor_z:.3g} standard deviations from 1")
        if self.offset_z > Z_LIMIT:
            found.append(f"a mean difference of {self.offset:.3g}, {self.offset_z:.3g} standard deviations from 0")
        if not self.worst <= 1:
            found.append(f"element {list(self.place)} is off by {self.worst:.3g} times the most that they can do")
        if self.rms_z > Z_LIMIT:
            found.append(f"differences {self.rms:.3g} times as large as theirs on average")
        return found


@dataclass(frozen=True)
class Roundings:
    """count: of each element, one after the other; shared: those of numbers that all elements have in common."""

    count: int
    format: str = "fp16"
    shared: int = 0

    def words(self) -> str:
        return f"{self.count} {label(self.format.partition('/')[0])} rounding{'s' * (self.count != 1)}"


def compare(actual: Any, expected: Any, roundings: Roundings, magnitudes: Any = None) -> Agreement:
    """Differences of `actual` beside what roundings to nearest explain; magnitudes: what each was relative to."""
    given, exact = flat_pair("assert_close", actual, expected)
    sizes = exact if magnitudes is None else flat_pair("assert_close", magnitudes, expected)[0]
    format = Format.of(roundings.format)
    growth = 1 + roundings.count * 2.0**-format.precision
    half = format.steps_at(np.abs(sizes) * growth) / 2
    both = (given == exact) | (np.isnan(given) & np.isnan(exact))
    with np.errstate(invalid="ignore"):
        difference = np.where(both, 0.0, given - exact)
    most = (roundings.count + roundings.shared) * half * growth + _REFERENCE * np.abs(sizes)
    with np.errstate(invalid="ignore"):
        ratio = np.where(np.isnan(difference), math.inf, np.abs(difference)) / np.where(np.isfinite(most), most, 1.0)
    index = int(ratio.argmax()) if ratio.size else 0
    finite = np.isfinite(difference) & np.isfinite(exact) & np.isfinite(sizes)
    rows = distinct_rows(exact[finite], difference[finite], half[finite])
    place = tuple(int(axis) for axis in np.unravel_index(index, np.shape(actual))) if ratio.size else ()
    worst = float(ratio[index]) if ratio.size else 0.0
    return Agreement(given.size, worst, place, *_statistics(rows, roundings))


def _statistics(rows: list[Floats], roundings: Roundings) -> tuple[float, float, float, float, float, float]:
    """Root mean square, factor and offset, each with its distance in standard deviations.

    rows: expected numbers, differences to them, half steps.

    A rounding to nearest is off by anything up to half a step with equal probability, so by half^2 / 3 in the square.
    """
    exact, difference, half = rows
    variance = roundings.count * half**2 / 3
    total = float(variance.sum())
    if exact.size < 2 or not total:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    ratio = float((difference**2).sum()) / total
    spread = (2 - 1.2 / roundings.count) * float((variance**2).sum()) / total**2
    shared = roundings.shared * half
    rms_z = (ratio - (1 + 3 * roundings.shared / roundings.count) ** 2) / math.sqrt(spread)
    squares = float((exact**2).sum())
    factor = float((exact * difference).sum()) / squares if squares else 0.0
    factor_error = math.sqrt(float((exact**2 * variance).sum())) / squares if squares else math.inf
    allowed = float((np.abs(exact) * shared).sum()) / squares if squares else 0.0
    offset = float(difference.mean())
    offset_z = (abs(offset) - float(shared.mean())) / (math.sqrt(total) / exact.size)
    return math.sqrt(ratio), rms_z, factor, (abs(factor) - allowed) / factor_error, offset, offset_z
