"""Histograms: merging, unscaling, and FP16's bands against rounding every value."""

from __future__ import annotations

import numpy as np
import pytest

from halfscope.results.histogram import Outcome, RecordedHistogram, merge
from synthetic import histogram_record, unscaled

LIMITS = (-60, 20)


def count(values: np.ndarray) -> RecordedHistogram:
    """The histogram of float32 `values`, one by one, as the program's tracker counts them."""
    low, high = LIMITS
    fields = {name: np.zeros(high - low + 1, np.int64) for name in ("counts", "pow2", "top", "subnormal_carry")}
    finite = values[np.isfinite(values) & (values != 0)]
    for value in np.abs(finite):
        exponent = int(np.frexp(value)[1]) - 1
        fraction = int(np.float32(value).view(np.uint32)) & 0x7FFFFF
        fields["counts"][exponent - low] += 1
        fields["pow2"][exponent - low] += fraction == 0
        fields["top"][exponent - low] += fraction >= 0x7FF000
        fields["subnormal_carry"][exponent - low] += fraction >= 0x7FE000
    zeros, infinities, nans = (int(test.sum()) for test in (values == 0, np.isinf(values), np.isnan(values)))
    return RecordedHistogram(low, **fields, zeros=zeros, infinities=infinities, nans=nans)


def by_rounding(values: np.ndarray, log2_scale: int) -> Outcome:
    """The same shares from numpy's float16, value by value."""
    with np.errstate(over="ignore"):
        half = np.abs((values * np.float32(2.0**log2_scale)).astype(np.float16)).astype(np.float64)
    real = np.isfinite(values) & (values != 0)
    shares = {
        "zeros": values == 0,
        "flushed": real & (half == 0),
        "subnormal": real & (half > 0) & (half < 2.0**-14),
        "normal": real & (half >= 2.0**-14) & np.isfinite(half),
        "overflow": real & np.isinf(half),
        "nonfinite": ~np.isfinite(values),
    }
    return Outcome(**{name: float(where.mean()) for name, where in shares.items()})


def edges() -> np.ndarray:
    """Values at and beside every edge of FP16, of both signs, with zeros and non-finite ones."""
    exact = np.array([2.0**-25, 2.0**-24, 2.0**-15, 2.0**-14, 65504, 65520, 65536, 1.0], np.float32)
    carry = np.float32(2.0**-15) * np.float32(2 - 2.0**-10)
    beside = [np.nextafter(exact, np.float32(side)) for side in (0, np.inf)]
    near = np.array([carry, np.nextafter(carry, np.float32(0))], np.float32)
    values = np.concatenate([exact, *beside, near])
    return np.concatenate([values, -values, np.array([0, -0.0, np.inf, -np.inf, np.nan], np.float32)])


@pytest.mark.parametrize("log2_scale", [-3, 0, 1, 10])
def test_fate_is_what_rounding_gives(log2_scale: int) -> None:
    random = np.random.default_rng(1)
    spread = (random.standard_normal(2000) * 2.0 ** random.uniform(-40, 17, 2000)).astype(np.float32)
    for values in (spread, edges(), edges() * np.float32(2.0**-log2_scale)):
        outcome, expected = count(values).outcome(log2_scale), by_rounding(values, log2_scale)
        for name in vars(expected):
            assert getattr(outcome, name) == pytest.approx(getattr(expected, name), abs=1e-12), name


def test_record_is_unscaled() -> None:
    record = histogram_record(10, "weight_gradient", 1024.0, {-18: 7, 3: 2}, zeros=5, negative_zeros=2, nans=1)
    histogram = unscaled(record)
    found = {int(e): int(c) for e, c in zip(histogram.exponents, histogram.counts) if c}
    assert found == {-18: 7, 3: 2}
    assert (histogram.zeros, histogram.nans, histogram.elements) == (5, 1, 15)


def test_merge_adds_histograms_of_different_scales() -> None:
    one = unscaled(histogram_record(1, "weight_gradient", 1.0, {-18: 7}, zeros=1))
    two = unscaled(histogram_record(2, "weight_gradient", 64.0, {-18: 5, -30: 2}, infinities=3))
    both = merge([one, two, RecordedHistogram()])
    assert {int(e): int(c) for e, c in zip(both.exponents, both.counts) if c} == {-30: 2, -18: 12}
    assert both.elements == 18


def test_within_loses_nothing() -> None:
    histogram = unscaled(histogram_record(1, "weight_gradient", 1.0, {-45: 3, -40: 1, 0: 4, 17: 2}))
    assert histogram.within(-40, 16)[[0, 40, 56]].tolist() == [4, 4, 2]


def test_empty_histogram() -> None:
    assert merge([]).elements == 0
    assert merge([]).outcome().flushed == 0
