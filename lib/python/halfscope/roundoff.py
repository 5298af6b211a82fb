"""Round-off as it must look: steps of a format, the signed error of a cast, and differences that roundings explain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfscope.formats import Floats, Format, label

Z_LIMIT = 6.0  # standard deviations: of normal numbers one in 500 million lies beyond
_BIAS = 0.1  # ulp, a mean error that is told
_BEYOND_HALF = 0.05  # share of the numbers
_FEWEST = 30  # different inexact numbers, from which on a mean error is judged
_REFERENCE = 8 * 2.0**-24  # relative, of an expected number that was computed in FP32


@dataclass(frozen=True)
class SignedError:
    """Mean signed error of a cast in ulps, over its different inexact numbers, and how many standard errors that is."""

    quantizer: str
    numbers: int
    mean: float  # mean of the result minus the number
    t: float
    mean_magnitude: float  # mean of the magnitudes' change: below zero where they shrink
    t_magnitude: float
    beyond_half: float  # share of the numbers that are off by more than half an ulp

    @property
    def is_one_sided(self) -> bool:
        """Whether the cast rounds to one side: truncation, up, down.

        Rounding to nearest never is, whatever the numbers: none is off by more than half an ulp, though the mean of
        numbers that lie close above the format's own is not 0. Stochastic rounding is once in 500 million casts.
        """
        pairs = ((self.mean, self.t), (self.mean_magnitude, self.t_magnitude))
        is_biased = any(abs(mean) > _BIAS and abs(t) > Z_LIMIT for mean, t in pairs)
        return self.numbers >= _FEWEST and self.beyond_half > _BEYOND_HALF and is_biased

    def __str__(self) -> str:
        parts = f"{self.mean:+.3f} ulp (t = {self.t:.1f}), of the magnitudes {self.mean_magnitude:+.3f} ulp"
        text = f"mean error {parts} (t = {self.t_magnitude:.1f}), {self.numbers} numbers"
        return f"{text}: one-sided" if self.is_one_sided else text


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """Norm of the difference of two arrays of one shape over that of `expected`.

    Numbers that are not finite in both count as equal if they are; infinite where they are in one array alone.
    """
    first, second = expected.astype(np.float64), actual.astype(np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(same, 0.0, second - first)
    if not np.isfinite(difference).all():
        return math.inf
    norm = float(np.linalg.norm(np.where(np.isfinite(first), first, 0.0)))
    off = float(np.linalg.norm(difference))
    return off / norm if norm else (math.inf if off else 0.0)


def signed_error(before: Any, after: Any, quantizer: str) -> SignedError:
    """The error of a cast of `before` to a format, which has made `after` of it.

    Numbers below the smallest normal one and beyond the largest are left out, and so are those that the cast has not
    changed. Arrays of NumPy, PyTorch or JAX of one shape; raises ValueError for others and for an unknown format.
    """
    exact, cast = _pair("signed_error", before, after)
    format = Format.of(quantizer)
    with np.errstate(invalid="ignore"):
        kept = (np.abs(exact) >= format.smallest_normal) & (np.abs(exact) <= format.largest) & np.isfinite(cast)
    kept &= exact != cast
    distinct, stored = _distinct(exact[kept], cast[kept])
    errors = (stored - distinct) / format.steps_at(distinct)
    beyond = float((np.abs(errors) > 0.5).mean()) if errors.size else 0.0
    means = (*_mean_and_t(errors), *_mean_and_t(errors * np.sign(distinct)))
    return SignedError(quantizer, errors.size, *means, beyond)


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
    given, exact = _pair("assert_close", actual, expected)
    sizes = exact if magnitudes is None else _pair("assert_close", magnitudes, expected)[0]
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
    rows = _distinct(exact[finite], difference[finite], half[finite])
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


def _distinct(*columns: Floats) -> list[Floats]:
    """Columns without the repetitions of rows: equal numbers have equal errors, and tell nothing new."""
    order = np.lexsort(columns)
    ordered = [column[order] for column in columns]
    is_new = np.ones(order.size, dtype=bool)
    if order.size:
        is_new[1:] = np.any([column[1:] != column[:-1] for column in ordered], axis=0)
    return [column[is_new] for column in ordered]


def _mean_and_t(errors: Floats) -> tuple[float, float]:
    if errors.size < 2:
        return (float(errors.mean()) if errors.size else 0.0), 0.0
    mean, deviation = float(errors.mean()), float(errors.std(ddof=1))
    if deviation == 0:
        return mean, math.copysign(math.inf, mean) if mean else 0.0
    return mean, mean / (deviation / math.sqrt(errors.size))


def _pair(function: str, first: Any, second: Any) -> tuple[Floats, Floats]:
    """Both as double, flat."""
    one, other = _doubles(first), _doubles(second)
    if one.shape != other.shape:
        raise ValueError(f"{function}: shapes {one.shape} and {other.shape}; give arrays of one shape")
    return one.ravel(), other.ravel()


def _doubles(array: Any) -> Floats:
    if hasattr(array, "detach"):
        array = array.detach().cpu().double().numpy()
    return np.asarray(array, dtype=np.float64)
