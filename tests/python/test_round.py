"""halfscope.round beside NumPy's own conversion to float16, and what it does with every kind of array."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import halfscope
from arrays import RIGHT
from dlpack import bfloat16

CHUNK = 1 << 22


def assert_rounds_as_numpy(values: np.ndarray) -> None:
    """Bit for bit, but for the payload of a NaN; and a histogram counts what that conversion did."""
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).astype(np.float32)
    rounded = halfscope.round(values, "fp16")
    different = rounded.view(np.uint32) != expected.view(np.uint32)
    assert not (different & ~(np.isnan(rounded) & np.isnan(expected))).any()
    found, became = halfscope.Histogram(values).what_if(), np.abs(expected)
    assert found.flushed == (became == 0).sum() - (values == 0).sum()
    assert found.subnormal == ((became > 0) & (became < 2.0**-14)).sum()
    assert found.overflow == np.isinf(became).sum() - np.isinf(values).sum()


def test_rounds_as_numpy_does() -> None:
    random = np.random.default_rng(1)
    assert_rounds_as_numpy(random.integers(0, 1 << 32, 1 << 20, dtype=np.uint32).view(np.float32))
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    assert_rounds_as_numpy(halves)
    ordered = np.sort(halves[np.isfinite(halves)])
    for limit in (np.float32(np.inf), np.float32(-np.inf)):
        assert_rounds_as_numpy(np.nextafter(ordered, limit))
    assert_rounds_as_numpy((ordered[1:] + ordered[:-1]) / 2)  # the ties


def count_compared(first: int) -> int:
    values = np.arange(first, first + CHUNK, dtype=np.uint32).view(np.float32)
    assert_rounds_as_numpy(values)
    return len(values)


@pytest.mark.slow
def test_rounds_every_float_as_numpy_does() -> None:
    # In processes, since NumPy's conversion spends a hundred nanoseconds on every underflow.
    with ProcessPoolExecutor() as pool:
        assert sum(pool.map(count_compared, range(0, 1 << 32, CHUNK))) == 1 << 32


@pytest.mark.parametrize("form", ["fp16/toward_zero", "fp8_e4m3/saturate", "e5m7/to_odd"])
def test_other_roundings_stay_between_the_neighbours(form: str) -> None:
    values = np.random.default_rng(2).normal(0, 1, 1000).astype(np.float32)
    rounded = halfscope.round(values, form)
    assert (rounded != values).any() and (np.abs(rounded - values) <= np.abs(values) / 8 + 2.0**-9).all()
    assert (halfscope.round(rounded, form) == rounded).all()
    if "toward_zero" in form:
        assert (np.abs(rounded) <= np.abs(values)).all()


def test_stochastic_rounding_is_drawn_from_seed_and_step() -> None:
    values = np.full(100_000, 1 + 0.25 * 2**-10, np.float32)  # a quarter of the way to the next number
    one = halfscope.round(values, "fp16/stochastic", seed=1)
    assert (one == halfscope.round(values, "fp16/stochastic", seed=1)).all()
    assert (one != halfscope.round(values, "fp16/stochastic", seed=2)).any()
    assert (one != halfscope.round(values, "fp16/stochastic", seed=1, step=1)).any()
    assert set(one.tolist()) == {1.0, 1 + 2**-10}
    assert abs((one > 1).mean() - 0.25) < 5 * (0.25 * 0.75 / len(values)) ** 0.5


def upper_bytes(array: np.ndarray) -> np.ndarray:
    """fp8_e5m2, which is the upper byte of float16, rounded to nearest even."""
    codes = np.atleast_1d(array).astype(np.float16).view(np.uint16).astype(np.uint32)
    rounded = (codes + 0x7F + (codes >> 8 & 1)) & 0xFF00
    return rounded.astype(np.uint16).view(np.float16).reshape(array.shape)


@pytest.mark.parametrize("kind", RIGHT)
def test_the_right_answer(kind: str) -> None:
    array = RIGHT[kind]()
    before = np.array(array)
    rounded = halfscope.round(array, "fp8_e5m2")
    assert rounded.dtype == np.float32 and rounded.shape == before.shape and rounded.flags.c_contiguous
    assert (rounded == upper_bytes(before)).all()
    assert (np.array(array) == before).all()


def test_names_of_other_frameworks() -> None:
    values = np.random.default_rng(4).normal(0, 1, 100).astype(np.float32)
    for name, ours in (("float16", "fp16"), ("bfloat16/toward_zero", "bf16/toward_zero"), ("float32", "fp32")):
        assert (halfscope.round(values, name) == halfscope.round(values, ours)).all()
    assert halfscope.Histogram(values, format="bfloat16").format == "bf16"


def test_bfloat16() -> None:
    values = np.float32([1.5, -0.0078125, 2.0**120, 0.0, np.inf])
    assert (halfscope.round(bfloat16(values), "bf16") == values).all()


@pytest.mark.parametrize("quantizer", ["fp17", "fp16/up/up", "", "fp16/sideways"])
def test_an_unknown_quantizer(quantizer: str) -> None:
    with pytest.raises(ValueError, match="fp16|rounding|overflow"):
        halfscope.round(np.zeros(1, np.float32), quantizer)
