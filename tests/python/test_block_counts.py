"""halfscope.count_blocks beside counts that NumPy makes of the rounded array."""

from __future__ import annotations

import math

import numpy as np
import pytest

import halfscope
from halfscope import BlockCounts, count_blocks

FORMATS = ["mxfp8_e4m3", "mxfp6_e2m3", "mxfp4", "mxfp4/floor", "nvfp4", "nvfp4_16x16", "fp8_1x128"]


def values(*shape: int, seed: int = 1) -> np.ndarray:
    generator = np.random.default_rng(seed)
    spread = generator.normal(0, 1, shape) * 2.0 ** generator.normal(0, 3, shape)
    return np.where(generator.random(shape) < 0.1, 0, spread).astype(np.float32)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("format", FORMATS)
def test_counts_are_those_of_rounding(format: str, axis: int) -> None:
    array = values(6, 70, 40)
    rounded, encoded = halfscope.round(array, format, axis=axis), halfscope.encode(array, format, axis=axis)
    found = count_blocks(array, format, axis=axis)
    assert found.elements == array.size and found.zeros == (array == 0).sum()
    assert found.flushed == ((array != 0) & (rounded == 0)).sum() > 0
    assert found.blocks == encoded.scales.size
    signal, error = (array.astype(float) ** 2).sum(), ((rounded.astype(float) - array) ** 2).sum()
    assert found.signal_to_noise_db() == pytest.approx(10 * math.log10(signal / error), abs=1e-6)
    assert found.relative_error() == pytest.approx(math.sqrt(error / signal), rel=1e-7)


def test_reach_of_the_scales() -> None:
    array = np.ones((4, 32), np.float32) * np.array([[6.0], [96.0], [0.0], [0.375]], np.float32)
    found = count_blocks(array, "mxfp4")
    assert found.scale_range("mxfp4") == (-4, 4) and found.zero_blocks == 1
    assert count_blocks(np.zeros((4, 32), np.float32), "mxfp4").scale_range("mxfp4") is None


def test_parts_add_up_and_pass_as_numbers() -> None:
    array = values(64, 96)
    whole, merged = count_blocks(array, "mxfp4"), BlockCounts()
    for part in (array[:20], array[20:]):
        merged.merge(count_blocks(part, "mxfp4"))
    assert merged == whole and merged != BlockCounts()
    sums = sum(count_blocks(part, "mxfp4").numbers() for part in (array[:20], array[20:]))
    assert BlockCounts.from_numbers(sums) == whole


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"format": "fp16"}, ValueError, "unknown block format 'fp16'"),
        ({"format": "mxfp4", "axis": 2}, ValueError, "^count_blocks: axis 2 of an array with 2 axes"),
        ({"array": [1.0], "format": "mxfp4"}, TypeError, "count_blocks"),
    ],
)
def test_a_clear_error(given: dict, error: type, message: str) -> None:
    array = given.pop("array", values(2, 32))
    with pytest.raises(error, match=message) as raised:
        count_blocks(array, **given)
    assert "\n" not in str(raised.value)


def test_numbers_of_another_length_are_refused() -> None:
    with pytest.raises(ValueError, match="^BlockCounts: 3 numbers; give"):
        BlockCounts.from_numbers(np.zeros(3, np.int64))
