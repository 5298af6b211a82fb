"""The floor of a failing comparison: the roundings that an element takes, and when no comparison can tell."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import halfscope
from halfscope.formats import Format
from halfscope.testing import Inconclusive, assert_close, compared

FORMATS = ("fp16", "bf16", "fp8_e4m3")


def rounded(values: np.ndarray, format: str) -> np.ndarray:
    return halfscope.round(values.astype(np.float32), format)


def bound(value: float, count: int, format: str) -> Fraction:
    """The most that `count` roundings do to a number, in exact arithmetic, with FP32 errors of the number itself."""
    described = Format.of(format)
    growth = 1 + Fraction(count, 2**described.precision)
    size = max(abs(Fraction(value)) * growth, Fraction(described.smallest_normal))
    exponent = math.floor(math.log2(size))
    while Fraction(2) ** exponent > size:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    half_step = Fraction(2) ** (exponent + 1 - described.precision) / 2
    return count * half_step * growth + Fraction(8, 2**24) * abs(Fraction(value))


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", range(100))
def test_the_roundings_of_an_element_are_the_fewest_that_reach_it(format: str, seed: int) -> None:
    rng = random.Random(seed)
    expected = rng.choice([-1, 1]) * 2.0 ** rng.uniform(-6, 6)
    actual = expected * (1 + rng.choice([-1, 1]) * 2.0 ** rng.uniform(-14, 1))
    floor = compared(np.array([actual]), np.array([expected]), 1, format).floor
    difference = abs(Fraction(actual) - Fraction(expected))
    assert floor is not None and floor.needed is not None and floor.needed < 100_000
    slack = Fraction(1, 10**12)  # `needed` is counted in double precision
    assert difference <= bound(expected, floor.needed, format) * (1 + slack)
    assert floor.needed == 0 or difference > bound(expected, floor.needed - 1, format) * (1 - slack)


@pytest.mark.parametrize("seed", range(20))
def test_the_message_has_the_planted_element_and_its_roundings(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.uniform(1, 1.5, 64).astype(np.float32).reshape(4, 16)
    actual, place, steps = rounded(values, "fp16").astype(np.float64), (int(rng.integers(4)), 3), rng.integers(8, 40)
    actual[place] = values[place] + steps * 2.0**-11
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, values, roundings=2)
    # A rounding does 2^-11 between 1 and 2, times what the roundings before it have let the number grow.
    takes = next(n for n in range(100) if bound(float(values[place]), n, "fp16") >= Fraction(int(steps), 2**11))
    assert f"Floor: element {list(place)} takes {takes} FP16 roundings (2 counted): " in str(caught.value)
    assert type(caught.value) is AssertionError


def sums(rng: np.random.Generator, condition: float, format: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums of 8 terms added in the format, the exact ones, and the terms' magnitudes, `condition` times as large."""
    half = rng.uniform(0.5, 1, (4, 200))
    terms = np.concatenate([half, -half])
    terms[4] += terms[0] * 4 * np.where(rng.random(200) < 0.5, -1, 1) / condition
    terms = rounded(terms, "fp32")
    total = rounded(terms[0], format)
    for term in terms[1:]:
        total = rounded(total + rounded(term, format), format)
    return total, terms.astype(np.float64).sum(0), np.abs(terms.astype(np.float64)).sum(0)


@pytest.mark.parametrize("format", ("fp16", "bf16"))
@pytest.mark.parametrize("seed", range(40))
def test_a_comparison_is_inconclusive_where_the_condition_number_leaves_no_digit(format: str, seed: int) -> None:
    """15 roundings of 2^-p each: far beyond 2^p / 15 nothing is left, not of all elements together; below, enough."""
    rng = np.random.default_rng(seed)
    limit = 2.0 ** Format.of(format).precision / 15
    total, exact, magnitudes = sums(rng, limit * rng.uniform(30, 3000), format)
    for actual in (total, exact, np.zeros_like(exact), -exact):
        with pytest.raises(Inconclusive, match="zeros would agree too: .* at a condition number of"):
            assert_close(actual, exact, roundings=15, format=format, magnitudes=magnitudes)
    total, exact, magnitudes = sums(rng, max(limit / 30, 1.5), format)
    assert_close(total, exact, roundings=15, format=format, magnitudes=magnitudes)
    for wrong in (np.zeros_like(exact), -exact, 2 * exact):
        with pytest.raises(AssertionError) as caught:
            assert_close(wrong, exact, roundings=15, format=format, magnitudes=magnitudes)
        assert type(caught.value) is AssertionError


def products(seed: int, terms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Products of matrices added term by term in BF16, the exact ones, and the sums of the terms' magnitudes."""
    rng = np.random.default_rng(seed)
    left, right = rounded(rng.standard_normal((8, terms)), "bf16"), rounded(rng.standard_normal((terms, 32)), "bf16")
    total = np.zeros((8, 32), np.float32)
    for k in range(terms):
        total = rounded(total + left[:, k : k + 1] * right[k], "bf16")
    return total, left.astype(np.float64) @ right, np.abs(left.astype(np.float64)) @ np.abs(right)


@pytest.mark.parametrize("seed", range(60))
def test_healthy_products_are_never_called_wrong(seed: int) -> None:
    """Without magnitudes an element whose terms cancelled is beyond its roundings: inconclusive, with what to give."""
    total, exact, magnitudes = products(seed, 32)
    assert compared(total, exact, 32, "bf16", magnitudes).verdict == "round-off"
    found = compared(total, exact, 32, "bf16")
    assert found.verdict == ("inconclusive" if found.reasons() else "round-off")
    if found.doubt:
        assert "give magnitudes=" in found.doubt and found.worst > 1
        assert 4 * abs(exact[found.place]) < np.sqrt((exact**2).mean())


def test_some_of_these_products_are_inconclusive() -> None:
    assert sum(compared(*products(seed, 32)[:2], 32, "bf16").verdict == "inconclusive" for seed in range(60)) > 10


@pytest.mark.parametrize("seed", range(30))
def test_wrong_products_are_not_called_inconclusive(seed: int) -> None:
    total, exact, magnitudes = products(seed, 32)
    largest = np.unravel_index(np.abs(exact).argmax(), exact.shape)
    single = total.copy()
    single[largest] += 8 * magnitudes[largest]
    for wrong in (1.5 * total, total + 4, single):
        for given in (None, magnitudes):
            with pytest.raises(AssertionError) as caught:
                assert_close(wrong, exact, roundings=32, format="bf16", magnitudes=given)
            assert type(caught.value) is AssertionError
            assert ("give magnitudes= if these are sums" in str(caught.value)) == (given is None)


def test_numbers_below_the_smallest_step_are_inconclusive() -> None:
    for seed in range(20):
        tiny = np.random.default_rng(seed).uniform(1e-9, 2.9e-8, 50)
        with pytest.raises(Inconclusive, match="zeros would agree too: 1 FP16 rounding .*; compare larger numbers"):
            assert_close(rounded(tiny, "fp16"), tiny, roundings=1)
        assert_close(np.append(rounded(tiny, "fp16"), 1), np.append(tiny, 1), roundings=1)
    assert_close(np.zeros(5), np.zeros(5), roundings=1)
    assert assert_close(np.zeros(0), np.zeros(0), roundings=1).floor is None


@pytest.mark.parametrize(
    ("actual", "expected", "says"),
    [
        (math.nan, 1.0, r"no number of roundings makes element \[1\] nan for 1$"),
        (math.inf, 1.0, r"no number of roundings makes element \[1\] inf for 1$"),
        (math.inf, 70000.0, r"inf for 70000; it lies beyond 65504, the largest of FP16$"),
        (-math.inf, -70000.0, r"-inf for -70000; it lies beyond 65504, the largest of FP16$"),
        (1.0, math.inf, r"1 for inf$"),
    ],
)
def test_what_no_number_of_roundings_explains(actual: float, expected: float, says: str) -> None:
    with pytest.raises(AssertionError, match=says):
        assert_close(np.array([1.0, actual]), np.array([1.0, expected]), roundings=3)
