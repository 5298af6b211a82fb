"""`Format`: limits and steps of every format beside its own numbers, one after the other."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import halfscope
from halfscope.formats import Format, is_in_blocks, label

FORMATS = list(halfscope.list_formats().index)
ELEMENTS = [name for name in FORMATS if not is_in_blocks(name)]
NARROW = [name for name in ELEMENTS if Format.of(name).precision <= 11 and Format.of(name).exponent_bits <= 8]


def magnitudes(format: Format) -> np.ndarray:
    """Numbers from the smallest to the largest one: of random bits, and beside every power of two."""
    low, high = math.log2(format.smallest), math.log2(format.largest)
    anywhere = np.exp2(np.random.default_rng(0).uniform(low, high, 300))
    powers = np.exp2(np.arange(math.ceil(low), math.floor(high)))
    found = np.concatenate([anywhere, powers, np.nextafter(powers.astype(np.float32), np.float32(0))])
    return found[found < format.largest].astype(np.float32)


@pytest.mark.parametrize("name", NARROW)
def test_a_step_is_the_distance_of_two_neighbours(name: str) -> None:
    """Rounded towards zero a number is in the same binade; one rounded up from just above is its neighbour."""
    format, values = Format.of(name), magnitudes(Format.of(name))
    below = halfscope.round(values, f"{name}/toward_zero")
    above = halfscope.round(np.nextafter(below, np.float32(np.inf)), f"{name}/up")
    normal = np.isfinite(above) & (below >= format.smallest_normal)
    assert normal.sum() > 10
    distances = above.astype(np.float64) - below
    assert np.array_equal(format.steps_at(values.astype(np.float64))[normal], distances[normal])
    assert [format.step_at(float(-value)) for value in values[normal]] == list(distances[normal])


@pytest.mark.parametrize("name", ELEMENTS)
def test_limits_are_numbers_of_the_format(name: str) -> None:
    format = Format.of(name)
    limits = np.array([format.largest, format.smallest_normal, format.smallest], np.float32)
    assert np.array_equal(halfscope.round(limits, name), limits)
    assert 0 < format.smallest <= format.smallest_normal < format.largest
    assert Format.of(f"{name}/stochastic").label == format.label == label(name)
    assert Format.of(f"{name}/stochastic").is_stochastic and not format.is_stochastic


def test_a_number_is_rounded_as_an_array_is() -> None:
    assert Format.of("fp16").round(1e-8) == 0 and Format.of("fp16").round(-1e9) == -math.inf
    assert Format.of("bf16").round(257.0) == 256 and Format.of("bf16/up").round(257.0) == 258
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Format.of("bf16").round(1e300) == math.inf


def test_a_format_has_the_range_of_fp32_or_not() -> None:
    assert Format.of("bf16").has_range_of_fp32 and Format.of("fp32").has_range_of_fp32
    assert not Format.of("fp16").has_range_of_fp32


@pytest.mark.parametrize("name", ["fp17", "", "mxfp4"])
def test_no_format_of_elements_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        Format.of(name)
