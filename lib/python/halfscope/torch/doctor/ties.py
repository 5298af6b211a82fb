"""Decisions within a step that a format makes otherwise: how many, and how near the tie was."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from halfscope.torch.doctor.calls import Call, Kept
from halfscope.torch.doctor.decisions import COMPARISONS, SMALLEST, WHOLE_ORDERS, axis_of, differences, made_by
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.nested_tensors import floats_in
from halfscope.torch.doctor.outcomes import Distance
from halfscope.torch.doctor.program import Run, Trial
from halfscope.torch.doctor.source_text import CallPlace


def tie_words(about: Examination, choices: Iterable[Distance]) -> dict[CallPlace, str]:
    """A clause for each place at which the format decides otherwise. One more run in FP32 keeps their operands."""
    wanted = [choice.place for choice in choices if choice.place is not None]
    if not wanted or not about.progress.has_time(2, "how near the ties are"):
        return {}
    kept = Kept(places=frozenset(wanted))
    about.keep(kept)
    exact = about.made(Trial(is_exact=True, keeps=kept))
    clauses = {place: _words(place, about.narrow, exact) for place in wanted}
    return {place: words for place, words in clauses.items() if words}


def _words(place: CallPlace, narrow: Run, exact: Run) -> str:
    pairs = list(zip(_calls(place, narrow), _calls(place, exact)))
    ties = [tie for one, other in pairs if (tie := _tie(one, other)) is not None]
    changed, every = sum(tie.changed for tie in ties), sum(tie.elements for tie in ties)
    if not changed:
        return ""
    text = f"{place.called} decides otherwise in {changed} of {every} elements"
    error = max(tie.error for tie in ties)
    margins = [margin for tie in ties for margin in tie.margins]
    if not error:
        return text
    text += f": its operands are off by up to {error:.2g}"
    return f"{text}, where FP32 decides by {min(margins):.2g} to {max(margins):.2g}" if margins else text


def _calls(place: CallPlace, run: Run) -> list[Call]:
    return [call for call in run.log.turns(place) if not call.is_forgotten]


class _Tie:
    """One call in the format and in FP32. margins: least and largest distance of the changed decisions in FP32."""

    def __init__(self, changed: torch.Tensor, error: float, margins: list[float]) -> None:
        self.changed, self.elements = int(changed.sum()), changed.numel()
        self.error, self.margins = error, margins


def _tie(narrow: Call, exact: Call) -> _Tie | None:
    one, other = made_by(narrow), made_by(exact)
    if one is None or other is None or one.shape != other.shape:
        return None
    changed = one != other
    pairs = zip(floats_in((narrow.args, narrow.kwargs)), floats_in((exact.args, exact.kwargs)))
    errors = [float((a.detach() - b.detach()).abs().max()) for a, b in pairs if a.shape == b.shape and a.numel()]
    return _Tie(changed, max(errors, default=0.0), _range_at(_margin(exact), exact, changed))


def _range_at(margin: torch.Tensor | None, call: Call, changed: torch.Tensor) -> list[float]:
    axis = axis_of(call)
    if margin is not None and axis is not None and changed.dim() > margin.dim():
        changed = changed.any(axis)
    if margin is None or changed.shape != margin.shape:
        return []
    found = margin[changed]
    return [float(found.min()), float(found.max())] if found.numel() else []


def _margin(call: Call) -> torch.Tensor | None:
    """Distances of the numbers from another decision; None of codes."""
    if call.name in COMPARISONS:
        return differences(call).abs()
    axis, first = axis_of(call), call.args[0]
    if axis is None or not isinstance(first, torch.Tensor) or not first.dim():
        return None
    ordered = first.detach().movedim(axis, -1).sort(-1, descending=call.name not in SMALLEST).values
    gaps = ordered[..., : _compared(call, ordered.shape[-1])].diff(dim=-1).abs()
    return gaps.amin(-1) if gaps.shape[-1] else None


def _compared(call: Call, count: int) -> int:
    """The numbers in order that decide: the chosen ones and the next."""
    if call.name == "topk":
        return min(count, int(call.kwargs.get("k", call.args[1] if len(call.args) > 1 else count)) + 1)
    return count if call.name in WHOLE_ORDERS else min(count, 2)
