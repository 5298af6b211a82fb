"""`halfscope.testing`: round-off passes over many seeds, and bugs beside it do not."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import halfscope
from halfscope.formats import Format
from halfscope.testing import assert_close, signed_error

SEEDS = range(20)
FORMATS = ("fp16", "bf16")


def numbers(seed: int, size: int = 1000) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


def rounded(values: np.ndarray, quantizer: str) -> np.ndarray:
    return halfscope.round(values.astype(np.float32), quantizer)


def chain(x: np.ndarray, y: np.ndarray, format: str) -> tuple[np.ndarray, np.ndarray]:
    """x y / 3 + x y with a rounding after each of three operations, and the same exactly."""
    product = rounded(x * y, format)
    exact = x.astype(np.float64) * y
    return rounded(rounded(product / 3, format) + product, format), exact / 3 + exact


def operands(seed: int, format: str) -> tuple[np.ndarray, np.ndarray]:
    return rounded(numbers(seed), format), rounded(numbers(seed + 1000), format)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", SEEDS)
def test_round_off_alone_passes(format: str, seed: int) -> None:
    values = numbers(seed)
    assert_close(rounded(values, format), values, roundings=1, format=format)
    actual, expected = chain(*operands(seed, format), format)
    found = assert_close(actual, expected, roundings=3, format=format)
    assert 0.1 < found.worst <= 1 and 0.3 < found.rms < 1.2


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_thousandth_beyond_it_does_not(format: str, seed: int) -> None:
    """In 1000 elements: as a factor, with signs at random, and in one element beside the bound."""
    values = numbers(seed)
    actual = rounded(values, format)
    signs = np.random.default_rng(seed).choice([-1, 1], values.size)
    single, exact = actual.astype(np.float64), float(values[137])
    half_step = Format.of(format).step_at(exact) / 2
    single[137] = exact + math.copysign(half_step * (1 + 2.0**-8) + 1e-3 * abs(exact), exact)
    for bug in (actual * 1.001, actual * (1 + 0.001 * signs), single):
        with pytest.raises(AssertionError, match="not explained by 1 "):
            assert_close(bug, values, roundings=1, format=format)


@pytest.mark.parametrize("rounding", ["toward_zero", "up", "down"])
@pytest.mark.parametrize("format", FORMATS)
def test_one_sided_rounding_is_a_bug(format: str, rounding: str) -> None:
    for seed in SEEDS:
        values = numbers(seed)
        actual = rounded(values, f"{format}/{rounding}")
        assert signed_error(values, actual, format).is_one_sided
        with pytest.raises(AssertionError):
            assert_close(actual, values, roundings=1, format=format)


@pytest.mark.parametrize("rounding", ["nearest_even", "nearest_away", "stochastic"])
@pytest.mark.parametrize("format", [*FORMATS, "fp8_e4m3"])
def test_nearest_and_stochastic_are_not_one_sided(format: str, rounding: str) -> None:
    for seed in SEEDS:
        for values in (numbers(seed), np.exp(4 * numbers(seed)), np.abs(numbers(seed, 100_000))):
            found = signed_error(values, halfscope.round(values, f"{format}/{rounding}", seed=seed), format)
            assert not found.is_one_sided, found


def test_small_additions_that_nearest_loses_are_not_one_sided() -> None:
    held = np.abs(rounded(numbers(0), "bf16"))
    total = held * (1 + 2.0**-11)
    found = signed_error(total, rounded(total, "bf16"), "bf16")
    assert found.mean_magnitude < -0.05 and found.t_magnitude < -50 and not found.is_one_sided


def test_the_mean_error_of_truncation_is_half_an_ulp() -> None:
    values = np.exp(numbers(0, 200_000) * 3)
    cut = signed_error(values, rounded(values, "bf16/toward_zero"), "bf16")
    assert abs(cut.mean_magnitude + 0.5) < 0.005 and cut.t_magnitude < -500
    assert "one-sided" in str(cut)
    near = signed_error(values, rounded(values, "bf16"), "bf16")
    assert abs(near.mean_magnitude) < 0.005 and "one-sided" not in str(near)


def test_signed_errors_are_those_of_fractions() -> None:
    values = numbers(3, 200)
    cast = rounded(values, "bf16/down")
    errors = []
    for before, after in zip(values.tolist(), cast.tolist()):
        if before != after:
            step = Fraction(2) ** (math.frexp(before)[1] - 8)
            errors.append((Fraction(after) - Fraction(before)) / step)
    found = signed_error(values, cast, "bf16")
    assert found.numbers == len(set(errors)) or found.numbers == len(errors)
    assert math.isclose(found.mean, float(sum(errors) / len(errors)), rel_tol=1e-12)


def test_repeated_numbers_count_once() -> None:
    values = np.full(1000, 0.1, np.float32)
    found = signed_error(values, rounded(values, "fp16"), "fp16")
    assert found.numbers == 1 and not found.is_one_sided
    assert_close(rounded(values, "fp16"), values, roundings=1)


def test_what_all_elements_share() -> None:
    values = rounded(numbers(0), "fp16")
    factor = np.float32(1 / math.sqrt(96))
    exact = values.astype(np.float64) * (1 / math.sqrt(96))
    actual = rounded(values * rounded(np.array([factor]), "fp16")[0], "fp16")
    assert_close(actual, exact, roundings=1, shared=1)
    with pytest.raises(AssertionError, match="a common factor"):
        assert_close(actual, exact, roundings=1)


@pytest.mark.parametrize("format", FORMATS)
def test_sums_are_relative_to_their_terms(format: str) -> None:
    for seed in SEEDS:
        terms = rounded(numbers(seed, 8 * 500), format).reshape(8, 500)
        total = terms[0]
        for term in terms[1:]:
            total = rounded(total + term, format)
        exact = terms.astype(np.float64).sum(0)
        assert_close(total, exact, roundings=7, format=format, magnitudes=np.abs(terms.astype(np.float64)).sum(0))


def test_infinities_and_nan() -> None:
    values = np.array([1.0, math.inf, math.nan, -2.0])
    assert_close(values, values, roundings=1)
    for wrong in (math.inf, math.nan):
        with pytest.raises(AssertionError, match=r"element \[3\]"):
            assert_close(np.array([1.0, math.inf, math.nan, wrong]), values, roundings=1)


def test_the_place_of_the_worst_element() -> None:
    values = numbers(0, 12).reshape(3, 4)
    actual = rounded(values, "fp16")
    actual[2, 1] += 1
    with pytest.raises(AssertionError, match=r"not explained by 1 FP16 rounding: .*element \[2, 1\] is off by"):
        assert_close(actual, values, roundings=1)


@pytest.mark.parametrize(
    ("options", "words"), [({"roundings": 0}, "roundings=0"), ({"roundings": 1, "format": "fp17"}, "fp17")]
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        assert_close(numbers(0), numbers(0), **options)
    with pytest.raises(ValueError, match="one shape"):
        assert_close(numbers(0, 3), numbers(0, 4), roundings=1)
