"""Search for the shortest region of calls that heals a step when it is computed in FP32."""

from __future__ import annotations

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
    """Calls from the last first one to the first last one that heal the step; empty where all of them do not."""
    places = about.places

    def heals(first: int, last: int) -> bool:
        return about.heals(about.region(frozenset(places[first : last + 1]), base))

    if not about.heals(about.region(None, base)):
        return []
    last = _smallest(0, len(places) - 1, lambda end: heals(0, end))
    first = (
        len(places) - 1 - _smallest(len(places) - 1 - last, len(places) - 1, lambda k: heals(len(places) - 1 - k, last))
    )
    found = places[first : last + 1]
    return found if about.heals(about.region(frozenset(found), base)) else places


def _smallest(low: int, high: int, holds: object) -> int:
    """The smallest number that holds, where all larger ones do; `high` is not asked."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):  # type: ignore[operator]
            high = middle
        else:
            low = middle + 1
    return low


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
