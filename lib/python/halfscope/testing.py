"""Assertions for tests of numerical code: bug, or round-off?"""

from __future__ import annotations

from typing import Any

from halfscope.agreement import Agreement, Floor, Roundings, compare
from halfscope.roundoff import SignedError, signed_error

__all__ = ["Agreement", "Floor", "Inconclusive", "SignedError", "assert_close", "signed_error"]


class Inconclusive(AssertionError):
    """The comparison cannot tell right numbers from wrong ones.

    Numbers that are all zero would agree too, as more terms cancel than the roundings leave digits; or no magnitudes
    are given, and sums whose terms cancelled explain the difference.
    """


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

    Returns the statistics. The message of an error has the element that is furthest beyond, with the roundings that it
    takes. Raises Inconclusive, an AssertionError, where the comparison cannot tell; ValueError for other shapes, an
    unknown format, and fewer than one rounding.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    found = compared(actual, expected, roundings, format, magnitudes, shared)
    judge(found)
    return found


def compared(
    actual: Any, expected: Any, roundings: int, format: str = "fp16", magnitudes: Any = None, shared: int = 0
) -> Agreement:
    """The statistics of `assert_close`, whatever they say; raises ValueError as it does."""
    if roundings < 1 or shared < 0:
        raise ValueError(f"assert_close: roundings={roundings}, shared={shared}; give 1 or more, and 0 or more")
    return compare(actual, expected, Roundings(roundings, format, shared), magnitudes)


def judge(found: Agreement) -> None:
    """Raises the error of `assert_close` unless roundings explain every difference."""
    __tracebackhide__ = True
    if found.floor is None or found.is_round_off:
        return
    counted, reasons = found.floor.roundings.words(), "; ".join(found.reasons())
    lines = [f"assert_close: not explained by {counted}: {reasons}", f"Floor: {found.floor}"]
    if not reasons:
        lines[0] = f"assert_close: inconclusive beside {counted}: {found.doubt}"
    elif found.doubt:
        lines.append(f"Inconclusive: {found.doubt}")
    elif found.floor.needed is not None and not found.is_relative_to_terms:
        lines.append("Relative to: the expected numbers; give magnitudes= if these are sums")
    error = Inconclusive if found.doubt else AssertionError
    raise error("\n  ".join(lines))
