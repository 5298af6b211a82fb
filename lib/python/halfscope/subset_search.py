"""Search for few members of a sequence that are enough, by runs that tell whether a set of them is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Member = TypeVar("Member")


def smallest(low: int, high: int, holds: Callable[[int], bool], near: int | None = None) -> int:
    """The smallest number that holds, where all larger ones do; `high` is not asked. near: where to begin."""
    if near is not None:
        low, high = _around(near, low, high, holds)
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _around(near: int, low: int, high: int, holds: Callable[[int], bool]) -> tuple[int, int]:
    """Bounds of the smallest number that holds, by steps from `near` that double."""
    at, step = near, 1
    if at == high or holds(at):
        high = at
        while low < high:
            at = max(low, high - step)
            if not holds(at):
                return at + 1, high
            high, step = at, 2 * step
        return low, high
    low = at + 1
    while low < high:
        at = min(high, low + step - 1)
        if at == high or holds(at):
            return low, at
        low, step = at + 1, 2 * step
    return low, high


def without_needless(
    members: Sequence[Member], is_enough: Callable[[frozenset[Member]], bool], most_runs: int
) -> list[Member]:
    """Without the members that the others are enough without, in halves, then quarters, down to single ones."""
    left, size, runs = list(members), max(1, len(members) // 2), 0
    while True:
        start = 0
        while start < len(left) and len(left) > 1 and runs < most_runs:
            without = left[:start] + left[start + size :]
            runs += 1
            if without and is_enough(frozenset(without)):
                left = without
            else:
                start += size
        if size == 1 or runs >= most_runs:
            return left
        size = max(1, size // 2)
