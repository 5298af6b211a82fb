"""Search for the shortest region of calls that heals a step when it is computed in FP32."""

from __future__ import annotations

from dataclasses import dataclass

from halfscope.subset_search import smallest, without_needless
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
    if not span:
        return None
    needed = without_needless(span, lambda places: about.heals(about.region(places, base)), _MOST_RUNS)
    return Region(tuple(span), tuple(needed))


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
    last = smallest(0, end, lambda at: heals(0, at), near)
    first = -smallest(-last, 0, lambda at: heals(-at, last), None if near is None else -min(near, last))
    found = places[first : last + 1]
    return found if about.heals(about.region(frozenset(found), base)) else places


def groups_of(needed: tuple[CallPlace, ...], log: CallLog) -> list[tuple[CallPlace, ...]]:
    """Calls that use each other's results are one group; each other group is a fault of its own."""
    groups: list[list[CallPlace]] = []
    for place in needed:
        before = {near.place for call in log.turns(place)[:4] for near in log.ancestors(call, _NEAR)}
        joined = [group for group in groups if before & set(group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(member for group in joined for member in group), place])
    return [tuple(group) for group in groups]
