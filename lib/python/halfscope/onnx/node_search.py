"""Search for few nodes that heal a graph when they are computed in FP32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from halfscope.subset_search import smallest, without_needless

_MOST_RUNS = 60  # to leave out nodes that are not needed

Heals = Callable[[frozenset[int]], bool]


def needed_nodes(numbers: Sequence[int], suspects: Sequence[int], heals: Heals) -> list[int]:
    """Nodes of which none is left out without harm; empty where all of them in FP32 do not heal.

    suspects: nodes that are tried first, as those whose result is infinite.
    """
    if suspects and heals(frozenset(suspects)):
        return without_needless(suspects, heals, _MOST_RUNS)
    if not heals(frozenset(numbers)):
        return []
    end = len(numbers) - 1
    last = smallest(0, end, lambda at: heals(frozenset(numbers[: at + 1])))
    first = end - smallest(0, end, lambda back: heals(frozenset(numbers[-back - 1 :])))
    span = list(numbers[min(first, last) : max(first, last) + 1])
    return without_needless(span if heals(frozenset(span)) else numbers, heals, _MOST_RUNS)
