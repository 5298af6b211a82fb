"""Rounding to a format by float64 arithmetic alone: what the counts of the tests of formats are compared with."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Format(NamedTuple):
    """Smallest exponent of a normal number, bits after the point, largest number."""

    min_exponent: int
    mantissa_bits: int
    largest: float


FORMATS = {
    "fp16": Format(-14, 10, 65504.0),
    "bf16": Format(-126, 7, 255 * 2.0**120),
    "fp8_e4m3": Format(-6, 3, 448.0),
    "fp8_e5m2": Format(-14, 2, 57344.0),
    "e5m7": Format(-14, 7, 255 * 2.0**8),
}


class Cast(NamedTuple):
    """Counts of nonzero finite numbers by the outcome of their cast."""

    flushed: int
    subnormal: int
    overflow: int


def rounded(values: np.ndarray, name: str) -> np.ndarray:
    """To nearest, ties to even; infinite beyond the largest number."""
    format = FORMATS[name]
    wide = np.asarray(values, np.float64)
    exponents = np.frexp(wide)[1] - 1
    step = 2.0 ** (np.maximum(exponents, format.min_exponent) - format.mantissa_bits).astype(np.float64)
    nearest = np.rint(wide / step) * step
    return np.where(np.abs(nearest) > format.largest, np.copysign(np.inf, wide), nearest)


def cast(values: np.ndarray, name: str) -> Cast:
    wide = np.asarray(values, np.float64).ravel()
    wide = wide[(wide != 0) & np.isfinite(wide)]
    nearest = np.abs(rounded(wide, name))
    normal = 2.0 ** FORMATS[name].min_exponent
    return Cast(
        int((nearest == 0).sum()), int(((nearest > 0) & (nearest < normal)).sum()), int(np.isinf(nearest).sum())
    )


def lost(weights: np.ndarray, updates: np.ndarray, name: str) -> int:
    """Updates other than zero that leave the rounded weights as they are; sums are exact in float64."""
    stored, change = rounded(weights, name), np.asarray(updates, np.float64)
    return int(((change != 0) & (rounded(stored + change, name) == stored)).sum())
