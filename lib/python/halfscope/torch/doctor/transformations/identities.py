"""Identities: the same function of the same operands, without the number that the format does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from halfscope.torch.doctor.call_mode import CallMode
from halfscope.torch.doctor.calls import Call, Change
from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.doctor.transformations.difference_rules import DIFFERENCES
from halfscope.torch.doctor.transformations.exponential_rules import EXPONENTIALS
from halfscope.torch.doctor.transformations.logarithm_rules import LOGARITHMS
from halfscope.torch.doctor.transformations.norm_rules import NORMS
from halfscope.torch.doctor.transformations.order_rules import ORDERS
from halfscope.torch.doctor.transformations.patterns import Pattern, Rule
from halfscope.torch.doctor.typing_edits import Edit, Texts
from halfscope.torch.events.call_text import text_of

RULES: tuple[Rule, ...] = (*LOGARITHMS, *EXPONENTIALS, *NORMS, *DIFFERENCES, *ORDERS)


def identities(group: Group) -> Iterator[Candidate]:
    """Each rule at each call near the group, the last calls first: these see most of the others."""
    found = []
    for call in reversed(group.near()):
        for rule in RULES:
            candidate = _candidate(group, call, rule)
            if candidate is not None:
                found.append(candidate)
    yield from found
    yield from _together(group, found)


def _together(group: Group, found: list[Candidate]) -> Iterator[Candidate]:
    """Two at different places, none of which is enough alone."""
    for index, first in enumerate(found[:6]):
        for second in found[index + 1 : 6]:
            if first.place == second.place:
                continue
            changes = {**first.trial.calls.changes, **second.trial.calls.changes}
            edits = (*first.edits, *second.edits) if first.edits and second.edits else ()
            words = f"{first.words}; and {second.words}"
            yield Candidate("identity", words, group.changed(changes, asks=True), True, edits, first.place)


def _candidate(group: Group, call: Call, rule: Rule) -> Candidate | None:
    texts = Texts(call.place)
    rewrite = rule(Pattern(call, group.log, texts))
    if rewrite is None:
        return None
    edits: tuple[Edit, ...] = ()
    if texts.is_complete and call.place.is_typed:
        edits = (*texts.edits, Edit(call.place.file, call.place.span, text=f"({rewrite.text})"))
    words = f"write {rewrite.text} for {call.place.called}"
    for edit in texts.edits:
        name = edit.before.strip("(:= ")
        words += f", with {name} = {' '.join(text_of(edit.file, edit.span).split())} of line {edit.span.line}"
    trial = group.changed({call.place: rewritten(rule)}, asks=True)
    return Candidate("identity", words, trial, True, edits, call.place)


def rewritten(rule: Rule) -> Change:
    """A rule as the change of a call."""

    def change(mode: CallMode, func: Any, args: tuple, kwargs: dict) -> Any:
        place = mode.log.latest_place
        call = Call(place, func, args, kwargs, (0, 0))
        rewrite = rule(Pattern(call, mode.log, Texts(place)))
        if rewrite is None:
            return func(*args, **kwargs)
        return rewrite.compute() if rewrite.inside is None else mode.run_wide(rewrite.compute, (rewrite.inside,), {})

    return change
