"""Every function that takes arrays, on every kind of array: the right answer, or an error that says what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import halfscope
from arrays import RIGHT, WRONG
from dlpack import bfloat16

# Results of each function on an array, as something that compares.
COUNTING = {
    "Histogram": halfscope.Histogram,
    "Histogram.update": lambda array: _updated(array),
    "analyze": lambda array: halfscope.analyze({"x": array}).to_dict(),
    "advise_scale": lambda array: halfscope.advise_scale({"x": array}).verdict,
    "lost_updates": lambda array: _numbers(halfscope.lost_updates(array, array)),
    "update_ratios": lambda array: halfscope.update_ratios(array, array),
}
COMPUTING = {
    "round": lambda array: halfscope.round(array, "bf16").tobytes(),
    "dot": lambda array: halfscope.dot(array, array, order="fp16_chunked(3)"),
    "sum": lambda array: halfscope.sum(array, order="fp16_pairwise"),
}
FUNCTIONS = COUNTING | COMPUTING
EMPTY = halfscope.Histogram()


def _updated(array: object) -> halfscope.Histogram:
    histogram = halfscope.Histogram()
    histogram.update(array)
    return histogram


def _numbers(counters: halfscope.UpdateCounters) -> tuple:
    return counters.elements, counters.nonzero, counters.lost, counters.applied_over_intended


def as_contiguous(array: object) -> np.ndarray:
    return np.array(array, np.float32, order="C")


@pytest.mark.parametrize("kind", RIGHT)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_same_as_of_a_contiguous_copy(function: str, kind: str) -> None:
    array = RIGHT[kind]()
    if function == "dot" and np.ndim(array) != 1:
        with pytest.raises(ValueError, match="give one axis each"):
            halfscope.dot(array, array)
        return
    before = as_contiguous(array)
    assert FUNCTIONS[function](array) == FUNCTIONS[function](before)
    assert (as_contiguous(array) == before).all()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_one_axis(function: str) -> None:
    values = RIGHT["contiguous"]().reshape(-1)
    expected = FUNCTIONS[function](values[::-2].copy())
    assert FUNCTIONS[function](values[::-2]) == expected
    assert FUNCTIONS[function](values.astype(np.float16)[::-2]) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
def test_bfloat16(function: str) -> None:
    values = np.float32([1.5, -0.0078125, 2.0**20, 0.0, 2.0**-30])
    assert FUNCTIONS[function](bfloat16(values)) == FUNCTIONS[function](values)


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_clear_error(function: str, kind: str) -> None:
    make, error, message = WRONG[kind]
    with pytest.raises(error, match=message) as raised:
        FUNCTIONS[function](make())
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("function", COMPUTING)
def test_float64_is_refused_where_it_would_be_rounded_twice(function: str) -> None:
    with pytest.raises(TypeError, match="array of float64; give float32, float16, bfloat16 or float8"):
        COMPUTING[function](np.zeros(3))


def doubles() -> np.ndarray:
    """Numbers at and right beside the edges of FP16, closer than float32 can tell, and numbers out of its range."""
    edges = np.array([2.0**-25, 2.0**-24, 2.0**-14 * (1 - 2.0**-12), 2.0**-14, 65504, 65520, 65536, 1.0])
    beside = [np.nextafter(edges, limit) for limit in (0, np.inf)]
    spread = np.random.default_rng(11).normal(0, 1, 20_000) * 2.0 ** np.random.default_rng(12).uniform(-40, 18, 20_000)
    found = np.concatenate([edges, *beside, spread, [1e-300, -5e-324, 1e300, 0, -0.0, np.inf, np.nan]])
    return np.concatenate([found, -found])


def test_float64_is_counted_as_numpy_casts_it() -> None:
    values = doubles()
    real = values[np.isfinite(values) & (values != 0)]
    with np.errstate(over="ignore"):
        halves = np.abs(real.astype(np.float16))  # NumPy rounds a double once
    for counts in (halfscope.Histogram(values).what_if(), halfscope.analyze({"x": values}).tensors[0]):
        assert counts.flushed == (halves == 0).sum()
        assert counts.subnormal == ((halves > 0) & (halves < 2.0**-14)).sum()
        assert counts.overflow == np.isinf(halves).sum()
    histogram = halfscope.Histogram(values)
    assert (histogram.zeros, histogram.infinities, histogram.nans) == (4, 2, 2)
    as_floats = halfscope.Histogram(real[np.abs(real) < 1e30].astype(np.float32))
    assert as_floats.what_if().flushed != histogram.what_if().flushed  # rounding twice gets this wrong


def test_float64_updates() -> None:
    random = np.random.default_rng(13)
    weights = random.normal(0, 1, 5000)
    updates = np.concatenate([random.normal(0, 1e-3, 4000), np.repeat([2.0**-12, -(2.0**-12)], 500)])
    updates[4100:4200] *= 1 + 2.0**-40  # a tie no longer
    stored = weights.astype(np.float16)
    towards = np.nextafter(stored, np.where(updates > 0, np.inf, -np.inf).astype(np.float16))
    half_way = np.abs(towards.astype(np.float64) - stored) / 2
    even = stored.view(np.uint16) % 2 == 0
    lost = (np.abs(updates) < half_way) | ((np.abs(updates) == half_way) & even)
    found = halfscope.lost_updates(weights, updates)
    assert (found.nonzero, found.lost) == (5000, lost.sum())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: halfscope.analyze(np.zeros(3, np.float32)), TypeError, "give a dictionary of arrays by name"),
        (lambda: halfscope.analyze({1: np.zeros(3, np.float32)}), TypeError, "the name 1 is no string"),
        (lambda: halfscope.analyze({"fc": np.zeros(3, int)}), TypeError, "^analyze: 'fc': an array of int64"),
        (lambda: halfscope.analyze({}, format="fp17"), ValueError, "unknown format 'fp17'"),
        (lambda: halfscope.analyze({}, format="nvfp4"), ValueError, "'nvfp4' has blocks with a scale each; .*fp4_e2m1"),
        (lambda: halfscope.Histogram(format="mxfp44"), ValueError, "block format 'mxfp44'; did you mean 'mxfp4'"),
        (lambda: halfscope.analyze({"x": np.zeros(3, np.float32)}, tolerance=1.5), ValueError, "tolerance = 1.5"),
        (lambda: halfscope.analyze({}, tolerance=float("nan")), ValueError, "tolerance = nan"),
        (lambda: halfscope.analyze({}, headroom=65), ValueError, "headroom = 65: give 0 to 64"),
        (lambda: halfscope.advise_scale([1]), TypeError, "^advise_scale: give a dictionary"),
        (lambda: halfscope.advise_scale({"fc": [1.0]}), TypeError, "^advise_scale: 'fc': cannot read list"),
        (lambda: halfscope.advise_scale({"x": EMPTY}, format="bf16"), ValueError, "is a histogram for fp16"),
        (lambda: halfscope.Histogram(format="half"), ValueError, "unknown format 'half'"),
        (lambda: halfscope.Histogram().merge(halfscope.Histogram(format="bf16")), ValueError, "format"),
        (lambda: halfscope.Histogram().window(-0.1), ValueError, "tolerance = -0.1"),
        (lambda: halfscope.Histogram().scaled(3.0), ValueError, "scaled: scale 3"),
    ],
)  # fmt: skip
def test_what_else_is_refused(call, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
