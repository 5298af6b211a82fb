"""Search for the shortest region of calls that heals a step when it is computed in FP32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.program import Trial
from halfscope.torch.doctor.source_text import CallPlace

_MOST_RUNS = 40  # for calls that are not needed in a region
_NEAR = 30  # calls between two of a group


@dataclass(frozen=True)
class Region:
    """Calls in FP32 from one line to another, and those of them that are needed."""

    places: tuple[CallPlace, ...]
    needed: tuple[CallPlace, ...]


def shortest_region(about: Examination, base: Trial) -> Region | None:
    """None where FP32 in all calls does not heal the step."""
    span = shortest_span(about, base)
    return Region(tuple(span), tuple(_needed(about, base, span))) if span else None


def shortest_span(about: Examination, base: Trial) -> list[CallPlace]:
    """Calls from the last first one to the first last one that heal the step; empty where all of them do not.

    The call that is infinite first is tried alone; the bounds are sought from it, or from a decision, outwards.
    """
    places, alone = about.places, about.first_infinite
    near = about.first_decision if alone is None else alone

    def heals(first: int, last: int) -> bool:
        return about.heals(about.region(frozenset(places[first : last + 1]), base))

    if alone is not None and heals(alone, alone):
        return [places[alone]]
    if not places or not about.heals(about.every_call(base)):
        return []
    end = len(places) - 1
    last = _smallest(0, end, lambda at: heals(0, at), near)
    first = -_smallest(-last, 0, lambda at: heals(-at, last), None if near is None else -min(near, last))
    found = places[first : last + 1]
    return found if about.heals(about.region(frozenset(found), base)) else places


def _smallest(low: int, high: int, holds: Callable[[int], bool], near: int | None = None) -> int:
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


def _needed(about: Examination, base: Trial, places: list[CallPlace]) -> list[CallPlace]:
    """Without the calls that the step heals without, in halves, then quarters, down to single ones."""
    left, size, runs = list(places), max(1, len(places) // 2), 0
    while True:
        start = 0
        while start < len(left) and len(left) > 1 and runs < _MOST_RUNS:
            without = left[:start] + left[start + size :]
            runs += 1
            if without and about.heals(about.region(frozenset(without), base)):
                left = without
            else:
                start += size
        if size == 1 or runs >= _MOST_RUNS:
            return left
        size = max(1, size // 2)


def groups_of(needed: tuple[CallPlace, ...], log: CallLog) -> list[tuple[CallPlace, ...]]:
    """Calls that use each other's results are one group; each other group is a fault of its own."""
    groups: list[list[CallPlace]] = []
    for place in needed:
        before = {near.place for call in log.turns(place)[:4] for near in log.ancestors(call, _NEAR)}
        joined = [group for group in groups if before & set(group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(member for group in joined for member in group), place])
    return [tuple(group) for group in groups]
