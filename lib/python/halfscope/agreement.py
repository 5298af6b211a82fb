"""Differences of two arrays beside what counted roundings to nearest do to each element, and to all together."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfscope.formats import Floats, Format, label
from halfscope.roundoff import Z_LIMIT, distinct_rows, flat_pair
from halfscope.subset_search import smallest

_REFERENCE = 8 * 2.0**-24  # relative, of an expected number that was computed in FP32
_CANCELLED = 4  # times an element below the root mean square, that its terms may have cancelled
_MOST_ROUNDINGS = 2**40  # asked whether they explain an element


@dataclass(frozen=True)
class Roundings:
    """count: of each element, one after the other; shared: those of numbers that all elements have in common."""

    count: int
    format: str = "fp16"
    shared: int = 0

    def words(self) -> str:
        return f"{self.count} {self.label} rounding{'s' * (self.count != 1)}"

    @property
    def label(self) -> str:
        return label(self.format.partition("/")[0])

    def bounds(self, sizes: Floats) -> Floats:
        """The largest difference that the roundings can make of numbers of these magnitudes."""
        return (self.count + self.shared) * self.half_steps(sizes) * self._growth + _REFERENCE * np.abs(sizes)

    def half_steps(self, sizes: Floats) -> Floats:
        """Half the format's step at the magnitudes that the earlier roundings may leave."""
        return Format.of(self.format).steps_at(np.abs(sizes) * self._growth) / 2

    @property
    def _growth(self) -> float:
        return 1 + self.count * 2.0 ** -Format.of(self.format).precision


@dataclass(frozen=True)
class Floor:
    """The element that is furthest beyond its roundings, and how many of them its difference takes.

    most: the largest difference that its roundings can make. needed: the fewest roundings that can make its difference;
    None where no number of roundings does, as for NaN.
    """

    place: tuple[int, ...]
    actual: float
    expected: float
    most: float
    needed: int | None
    roundings: Roundings

    def __str__(self) -> str:
        values, counted = f"{self.actual:.6g} for {self.expected:.6g}", self.roundings
        if self.needed is None:
            text = f"no number of roundings makes element {list(self.place)} {values}"
        else:
            takes = f"{replace(counted, count=self.needed).words()} ({counted.count} counted)"
            off = f"{values}, off by {abs(self.actual - self.expected):.3g}"
            text = f"element {list(self.place)} takes {takes}: {off}; the counted make at most {self.most:.3g}"
        largest = Format.of(counted.format).largest
        if math.isinf(self.actual) and largest < abs(self.expected) < math.inf:
            text = f"{text}; it lies beyond {largest:g}, the largest of {counted.label}"
        return text


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
    floor: Floor | None = None  # that of `place`; None without elements
    doubt: str = ""  # the reason why the comparison is inconclusive; empty where it is not
    is_relative_to_terms: bool = False  # whether magnitudes were given

    @property
    def verdict(self) -> str:
        """round-off, not round-off, or inconclusive."""
        if self.doubt:
            return "inconclusive"
        return "not round-off" if self.reasons() else "round-off"

    @property
    def is_round_off(self) -> bool:
        return self.verdict == "round-off"

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
class _Numbers:
    """Flat arrays of one length; sizes: what the roundings were relative to, which is_known says."""

    given: Floats
    exact: Floats
    sizes: Floats
    is_known: bool
    shape: tuple[int, ...]


def compare(actual: Any, expected: Any, roundings: Roundings, magnitudes: Any = None) -> Agreement:
    """Differences of `actual` beside what roundings to nearest explain; magnitudes: what each was relative to."""
    given, exact = flat_pair("assert_close", actual, expected)
    sizes = exact if magnitudes is None else flat_pair("assert_close", magnitudes, expected)[0]
    numbers = _Numbers(given, exact, sizes, magnitudes is not None, tuple(np.shape(actual)))
    found = _agreement(numbers, roundings)
    if not found.elements:
        return found
    doubt = _unknown_condition(numbers, roundings, found) if found.reasons() else _nothing_judged(numbers, roundings)
    floor = _floor(numbers, roundings, found.place)
    return replace(found, floor=floor, doubt=doubt, is_relative_to_terms=numbers.is_known)


def _agreement(numbers: _Numbers, roundings: Roundings) -> Agreement:
    given, exact, sizes = numbers.given, numbers.exact, numbers.sizes
    both = (given == exact) | (np.isnan(given) & np.isnan(exact))
    with np.errstate(invalid="ignore"):
        difference = np.where(both, 0.0, given - exact)
        most = roundings.bounds(sizes)
        ratio = np.where(np.isnan(difference), math.inf, np.abs(difference)) / np.where(np.isfinite(most), most, 1.0)
    index = int(ratio.argmax()) if ratio.size else 0
    half = roundings.half_steps(sizes)
    # A number below half the smallest step becomes 0 each time: its error is its size, no draw among many.
    drawn = np.isfinite(difference) & np.isfinite(exact) & np.isfinite(sizes) & ((np.abs(sizes) >= half) | (sizes == 0))
    rows = distinct_rows(exact[drawn], difference[drawn], half[drawn])
    place = tuple(int(axis) for axis in np.unravel_index(index, numbers.shape)) if ratio.size else ()
    worst = float(ratio[index]) if ratio.size else 0.0
    return Agreement(given.size, worst, place, *_statistics(rows, roundings))


def _floor(numbers: _Numbers, roundings: Roundings, place: tuple[int, ...]) -> Floor:
    index = int(np.ravel_multi_index(place, numbers.shape)) if place else 0
    given, exact, size = (float(each[index]) for each in (numbers.given, numbers.exact, numbers.sizes))
    needed = _needed(abs(given - exact), size, roundings)
    most = float(roundings.bounds(np.array([size]))[0])
    return Floor(place, given, exact, most, 0 if given == exact else needed, roundings)


def _needed(difference: float, size: float, roundings: Roundings) -> int | None:
    """The fewest roundings that make the difference, of a number of this size; None where none do."""

    def explains(count: int) -> bool:
        return difference <= float(replace(roundings, count=count).bounds(np.array([size]))[0])

    if not math.isfinite(difference) or not explains(_MOST_ROUNDINGS):
        return None
    return smallest(0, _MOST_ROUNDINGS, explains)  # the bound grows with the roundings


def _nothing_judged(numbers: _Numbers, roundings: Roundings) -> str:
    """The reason why an agreement says nothing: numbers that are all zero would agree too."""
    nonzero = np.isfinite(numbers.exact) & (numbers.exact != 0)
    exact, sizes = np.abs(numbers.exact[nonzero]), np.abs(numbers.sizes[nonzero])
    bounds = roundings.bounds(sizes)
    if not exact.size or (bounds < exact).any():
        return ""
    if _agreement(replace(numbers, given=np.zeros_like(numbers.exact)), roundings).reasons():
        return ""
    share = float(np.median(bounds / exact))
    text = f"zeros would agree too: {roundings.words()} can change a number by {share:.3g} times itself"
    if numbers.is_known and (condition := float(np.median(sizes / exact))) > 1:
        return f"{text} (median), at a condition number of {condition:.3g}; compare sums whose terms cancel less"
    return f"{text} (median); compare larger numbers, or count fewer roundings"


def _unknown_condition(numbers: _Numbers, roundings: Roundings, found: Agreement) -> str:
    """The reason why a disagreement says nothing: sums as large as the elements' root mean square explain it."""
    index = int(np.ravel_multi_index(found.place, numbers.shape)) if found.place else 0
    expected = abs(float(numbers.exact[index]))
    finite = numbers.exact[np.isfinite(numbers.exact)]
    usual = math.sqrt(float((finite**2).mean())) if finite.size else 0.0
    if numbers.is_known or found.worst <= 1 or not _CANCELLED * expected < usual:
        return ""
    wide = replace(numbers, sizes=np.maximum(np.abs(numbers.exact), usual))
    if _agreement(wide, roundings).reasons():
        return ""
    size = _size_needed(abs(float(numbers.given[index]) - float(numbers.exact[index])), expected, roundings)
    condition = f", a condition number of {size / expected:.3g}," if expected else ""
    return (
        f"if element {list(found.place)} is a sum whose terms cancelled, terms of {size:.3g} together{condition} "
        f"explain it, and the elements' root mean square is {usual:.3g}; give magnitudes=, the sum of the terms' "
        "magnitudes"
    )


def _size_needed(difference: float, size: float, roundings: Roundings) -> float:
    """The smallest magnitude, of `size` times powers of 2, at which the roundings make the difference."""
    size = size or difference
    while float(roundings.bounds(np.array([size]))[0]) < difference:
        size *= 2
    return size


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
