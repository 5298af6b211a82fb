"""Assertions for tests of numerical code: bug, or round-off?"""

from __future__ import annotations

from typing import Any

from halfscope.agreement import Agreement, Roundings, compare
from halfscope.roundoff import SignedError, signed_error

__all__ = ["Agreement", "SignedError", "assert_close", "signed_error"]


def assert_close(
    actual: Any,
    expected: Any,
    *,
    roundings: int,
    format: str = "fp16",
    magnitudes: Any = None,
    shared: int = 0,
) -> Agreement:
    """Raises AssertionError unless counted roundings to nearest explain every difference.

    Each element may be off by the half steps of its roundings, no more. Beside that bound, which holds for any data,
    three statistics look at all elements together: a common factor, a common offset and the root mean square. Round-off
    of independent elements lies beyond 6 of their standard deviations once in 500 million tests.

    actual: from the code under test. expected: computed in FP32 or FP64, of the same shape; NumPy, PyTorch or JAX.
    roundings: to `format`, that each element has been through one after the other, such as 3 for (a * b + c) / d.
    magnitudes: the sizes that the roundings were relative to, by default those of `expected`; of a sum the sum of the
        terms' magnitudes.
    shared: further roundings of numbers that all elements have in common, such as a factor 1 / sqrt(d).

    Returns the statistics. Raises ValueError for other shapes, an unknown format, and fewer than one rounding.
    """
    if roundings < 1 or shared < 0:
        raise ValueError(f"assert_close: roundings={roundings}, shared={shared}; give 1 or more, and 0 or more")
    counted = Roundings(roundings, format, shared)
    found = compare(actual, expected, counted, magnitudes)
    reasons = found.reasons()
    if reasons:
        raise AssertionError(f"assert_close: not explained by {counted.words()}: {'; '.join(reasons)}")
    return found
