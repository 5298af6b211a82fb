"""A change of a step that is to be tried, with the words and the source text of the same change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.calls import Call, Change
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.program import Run, Trial
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.doctor.typing_edits import Edit

_DEEP = 12  # ancestors of a group that are changed too
_BEHIND = 8  # calls behind a group
_TURNS = 20  # calls at one place that are looked at for a cause


@dataclass(frozen=True)
class Candidate:
    """One change. words: what to type. moves: it moves a constant, or drops a guard."""

    family: str
    words: str
    trial: Trial
    moves: bool = False
    edits: tuple[Edit, ...] = ()
    place: CallPlace | None = None


@dataclass(frozen=True)
class Group:
    """Calls that have one fault together. base: the trial in which all other faults are healed."""

    about: Examination
    places: tuple[CallPlace, ...]
    base: Trial = field(default_factory=Trial)

    @property
    def log(self) -> CallLog:
        return self.about.narrow.log

    @property
    def narrow(self) -> Run:
        return self.about.narrow

    def calls(self) -> list[Call]:
        """The first call at each place of the group."""
        return [call for place in self.places if (call := self.first_call(place)) is not None]

    def first_call(self, place: CallPlace) -> Call | None:
        return next(iter(self.log.turns(place)), None)

    def near(self) -> list[Call]:
        """Calls of the group, their ancestors and the calls behind, a call for each place."""
        found = self.calls()
        for call in list(found):
            found += self.log.ancestors(call, _DEEP)
        order = self.about.places
        last = max((order.index(place) for place in self.places if place in order), default=-1)
        behind = map(self.first_call, order[last + 1 : last + 1 + _BEHIND])
        found += [call for call in behind if call is not None]
        return list({call.place: call for call in found if self.about.is_sought(call.place)}.values())

    def reach(self) -> list[Call]:
        """Calls whose operands a change, or the words of a cause, may ask for."""
        turns = [call for place in self.places for call in self.log.turns(place)[:_TURNS]]
        asked = [*self.near(), *turns]
        before = [made for call in asked for made in self.log.ancestors(call, _DEEP)]
        return [*asked, *before]

    def changed(self, changes: dict[CallPlace, Change], asks: bool = False) -> Trial:
        """The group's trial with these changes. asks: these ask for the operands of calls in front of theirs."""
        plan = self.base.calls
        asked = frozenset(call.place for call in self.reach()) if asks else frozenset()
        calls = replace(plan, changes={**plan.changes, **changes}, asked=plan.asked | asked)
        return replace(self.base, calls=calls)
