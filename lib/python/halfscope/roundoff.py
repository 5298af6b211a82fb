"""Round-off as it must look: the relative error of an array, and the signed error of a cast."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfscope.formats import Floats, Format

Z_LIMIT = 6.0  # standard deviations: of normal numbers one in 500 million lies beyond
_BIAS = 0.1  # ulp, a mean error that is told
_BEYOND_HALF = 0.05  # share of the numbers
_FEWEST = 30  # different inexact numbers, from which on a mean error is judged


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
    exact, cast = flat_pair("signed_error", before, after)
    format = Format.of(quantizer)
    with np.errstate(invalid="ignore"):
        kept = (np.abs(exact) >= format.smallest_normal) & (np.abs(exact) <= format.largest) & np.isfinite(cast)
    kept &= exact != cast
    distinct, stored = distinct_rows(exact[kept], cast[kept])
    errors = (stored - distinct) / format.steps_at(distinct)
    beyond = float((np.abs(errors) > 0.5).mean()) if errors.size else 0.0
    means = (*_mean_and_t(errors), *_mean_and_t(errors * np.sign(distinct)))
    return SignedError(quantizer, errors.size, *means, beyond)


def distinct_rows(*columns: Floats) -> list[Floats]:
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


def flat_pair(function: str, first: Any, second: Any) -> tuple[Floats, Floats]:
    """Both as double, flat."""
    one, other = _doubles(first), _doubles(second)
    if one.shape != other.shape:
        raise ValueError(f"{function}: shapes {one.shape} and {other.shape}; give arrays of one shape")
    return one.ravel(), other.ravel()


def _doubles(array: Any) -> Floats:
    if hasattr(array, "detach"):
        array = array.detach().cpu().double().numpy()
    return np.asarray(array, dtype=np.float64)
