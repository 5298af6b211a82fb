"""Search for few nodes that heal a graph when they are computed in FP32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_MOST_RUNS = 60  # to leave out nodes that are not needed

Heals = Callable[[frozenset[int]], bool]


def needed_nodes(numbers: Sequence[int], suspects: Sequence[int], heals: Heals) -> list[int]:
    """Nodes of which none is left out without harm; empty where all of them in FP32 do not heal.

    suspects: nodes that are tried first, as those whose result is infinite.
    """
    if suspects and heals(frozenset(suspects)):
        return _without_needless(list(suspects), heals)
    if not heals(frozenset(numbers)):
        return []
    last = _smallest(len(numbers), lambda end: heals(frozenset(numbers[: end + 1])))
    first = len(numbers) - 1 - _smallest(len(numbers), lambda back: heals(frozenset(numbers[-back - 1 :])))
    span = list(numbers[min(first, last) : max(first, last) + 1])
    return _without_needless(span if heals(frozenset(span)) else list(numbers), heals)


def _smallest(size: int, holds: Callable[[int], bool]) -> int:
    """The smallest number below `size` that holds, where all larger ones do; the largest is not asked."""
    low, high = 0, size - 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _without_needless(left: list[int], heals: Heals) -> list[int]:
    """In halves, then quarters, down to single nodes."""
    size, runs = max(1, len(left) // 2), 0
    while runs < _MOST_RUNS:
        start = 0
        while start < len(left) and len(left) > 1 and runs < _MOST_RUNS:
            without = left[:start] + left[start + size :]
            runs += 1
            if without and heals(frozenset(without)):
                left = without
            else:
                start += size
        if size == 1:
            break
        size = max(1, size // 2)
    return left
