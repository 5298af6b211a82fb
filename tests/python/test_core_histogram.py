"""halfscope.Histogram, lost_updates and dot beside the same counts and sums made with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import halfscope


def values() -> np.ndarray:
    random = np.random.default_rng(4)
    floats = random.integers(0, 1 << 32, 200_000, dtype=np.uint32).view(np.float32)
    edges = np.float32([2.0**-25, 2.0**-24, 2.0**-14 * (1 - 2.0**-12), 65519, 65520, 0, -0.0, np.inf, np.nan, 1e-45])
    return np.concatenate([floats, np.tile(edges, 100), random.normal(0, 1e-5, 100_000).astype(np.float32)])


def test_counts_per_binade() -> None:
    x = values()
    histogram = halfscope.Histogram(x)
    finite = np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64)
    exponents = np.frexp(finite)[1] - 1
    frame = histogram.to_pandas()
    assert frame.index[0] == exponents.min() and frame.index[-1] == exponents.max()
    counted = dict(zip(*np.unique(exponents, return_counts=True)))
    assert {e: n for e, n in frame["counts"].items() if n} == counted
    assert frame["pow2"].sum() == (finite == np.exp2(exponents)).sum()
    assert histogram.nonzero == len(finite) and histogram.elements == len(x)
    assert histogram.zeros == (x == 0).sum() and histogram.negative_zeros == ((x == 0) & np.signbit(x)).sum()
    assert histogram.infinities == np.isinf(x).sum() and histogram.nans == np.isnan(x).sum()
    assert histogram.max_abs == finite.max()


@pytest.mark.parametrize("log2_scale", [-20, -1, 0, 1, 10, 24])
def test_what_if_is_what_the_cast_does(log2_scale: int) -> None:
    x = values()
    scaled = x[np.isfinite(x) & (x != 0)].astype(np.float64) * 2.0**log2_scale
    with np.errstate(over="ignore"):
        halves = np.abs(scaled.astype(np.float16))
    found = halfscope.Histogram(x).what_if(2.0**log2_scale)
    assert found.flushed == (halves == 0).sum()
    assert found.subnormal == ((halves > 0) & (halves < 2.0**-14)).sum()
    assert found.overflow == np.isinf(halves).sum()
    assert found.flushed_fraction == found.flushed / len(scaled)


def test_update_and_merge_add_up() -> None:
    x = values()
    parts = halfscope.Histogram(x[:1000])
    parts.update(x[1000:5000])
    rest = halfscope.Histogram(x[5000:].reshape(2, -1))
    rest.merge(parts)
    assert rest == halfscope.Histogram(x) and rest != parts
    assert halfscope.Histogram().elements == 0 and len(halfscope.Histogram().to_pandas()) == 0


@pytest.mark.parametrize("scale", [0.0, -1.0, 3.0, np.inf, np.nan, 2.0**201])
def test_scales_are_powers_of_two(scale: float) -> None:
    with pytest.raises(ValueError, match="give a power of two"):
        halfscope.Histogram().what_if(scale)


def test_lost_updates() -> None:
    random = np.random.default_rng(5)
    weights = random.normal(0, 1, 10_000).astype(np.float16)
    updates = (random.normal(0, 1, 10_000) * 1e-3).astype(np.float32)
    updates[:100] = 0
    changed = (weights.astype(np.float64) + updates).astype(np.float16) != weights
    counters = halfscope.lost_updates(weights, updates)
    assert (counters.elements, counters.nonzero) == (10_000, 9_900)
    assert counters.lost == 9_900 - changed.sum() and 0 < counters.lost < 9_900
    ratios = halfscope.update_ratios(weights, updates)
    assert ratios.elements == np.count_nonzero(weights[100:])
    for function in (halfscope.lost_updates, halfscope.update_ratios):
        with pytest.raises(ValueError, match=r"weights of shape \(10000\) and updates of shape \(9999\)"):
            function(weights, updates[1:])
        with pytest.raises(ValueError, match=r"weights of shape \(64, 48\) and updates of shape \(48, 64\); give an"):
            function(np.ones((64, 48), np.float32), np.ones((48, 64), np.float32))
    table, change = weights[:3072].reshape(64, 48), updates[:3072].reshape(64, 48)
    assert halfscope.lost_updates(np.asfortranarray(table), change) == halfscope.lost_updates(table, change)


def test_dot_adds_up_in_half_precision() -> None:
    random = np.random.default_rng(6)
    a, b = random.normal(0, 1, (2, 500)).astype(np.float16)
    total = np.float16(0)
    for term in (a.astype(np.float32) * b.astype(np.float32)).astype(np.float16):
        total = np.float16(np.float64(total) + np.float64(term))
    assert halfscope.dot(a, b, order="fp16_sequential") == total
    ones = np.ones(4096, np.float32)
    assert halfscope.dot(ones, ones, order="fp16_sequential") == 2048  # 2048 + 1 rounds to 2048
    assert halfscope.dot(ones, ones, order="tensor_core(hopper)") == 4096
    assert halfscope.dot(ones, ones, start=4.0) == 4100


@pytest.mark.parametrize(
    ("shapes", "model", "message"),
    [
        (((3,), (4,)), "fp32_sequential", "3 and 4 elements"),
        (((3, 1), (3, 1)), "fp32_sequential", "give one axis each"),
        (((), ()), "fp32_sequential", "0 and 0 axes"),
        (((3,), (3,)), "fp61_sequential", "unknown order"),
    ],
)
def test_what_dot_refuses(shapes: tuple, model: str, message: str) -> None:
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    with pytest.raises(ValueError, match=message):
        halfscope.dot(a, b, order=model)
