"""The dot products of the notebooks: exact sums beside fractions, known results of the generations, and the figures."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from halfscope import dot_products, plotting


def fraction(a: np.ndarray, b: np.ndarray) -> Fraction:
    return sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a, b)), Fraction(0))


@pytest.mark.parametrize("signs", ["both", "positive"])
def test_exact_sums(signs: str) -> None:
    for seed in range(20):
        a, b = dot_products.random_factors(100, seed, signs)
        assert dot_products.exact_dot(a, b, 0.125) == float(fraction(a, b) + Fraction(1, 8))
        assert (signs == "both") == bool((a < 0).any())


def test_the_generations_keep_different_bits() -> None:
    """2^23 - 2^23 - 1/2 - 1/4 - 1/8 on GPUs, as published for V100, A100 and H100."""
    frame = dot_products.compare(*dot_products.large_and_small())
    assert frame["result"].to_dict() == {
        "V100": 0, "T4": -0.5, "A100": -0.5, "L40S": -0.5, "H100": -0.75, "B200": -0.75, "exact": -0.875
    }  # fmt: skip
    assert frame["bits"]["H100"] == "0xbf400000" and (frame["error"] == frame["result"] + 0.875).all()


def test_what_fp32_cannot_hold_has_no_bits() -> None:
    a, b = np.float16([1, 2.0**-12]), np.float16([1, 2.0**-13])
    frame = dot_products.compare(a, b, models={"H100": "tensor_core(hopper)"})
    assert frame["bits"].to_dict() == {"H100": "0x3f800000", "exact": "not in FP32"}


def test_errors() -> None:
    lengths = (4, 4096)
    errors = dot_products.errors_by_length(lengths=lengths)
    a, b = dot_products.random_factors(4096, seed=4096, signs="positive")
    exact = float(fraction(a, b))
    assert errors["FP32"][4096] == abs(dot_products.dot(a, b) - exact) / exact
    # FP16 stagnates, and tensor cores cut off, more of them on the older one.
    assert errors["FP16"][4096] > 100 * errors["V100"][4096] > 200 * errors["H100"][4096]
    samples = dot_products.error_samples(terms=64, count=30, signs="positive")
    assert samples.shape == (30, 6) and (samples <= 0).all().all()
    assert samples["V100"].median() < samples["A100"].median() < samples["H100"].median()


def test_figures() -> None:
    errors = dot_products.errors_by_length(lengths=(16, 64))
    axes = plotting.dot_errors_by_length(errors).axes[0]
    assert [line.get_label() for line in axes.lines] == list(errors)
    samples = dot_products.error_samples(terms=16, count=9)
    figure = plotting.dot_errors({"both": samples, "again": samples})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["both", "again"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(dot_products.GENERATIONS)
