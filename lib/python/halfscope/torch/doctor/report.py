"""Report of a diagnosis: what to type, why, and what was tried."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfscope.reporting import Finding, Place, Report, Verdict
from halfscope.torch.doctor.failures import Alarm
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.doctor.typing_edits import Edit, typed
from halfscope.torch.findings.fault import Fault


@dataclass(frozen=True)
class Advice(Finding):
    """One cause with its remedy. kind: family of the remedy; empty where none was found. edits: the text to type."""

    edits: tuple[Edit, ...] = ()

    def typed(self, file: str | Path) -> str | None:
        """The source of a file with the remedy typed; None where the remedy is no change of that file."""
        own = [edit for edit in self.edits if Path(edit.file) == Path(file)]
        return typed(Path(file).read_text(), own) if own else None


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Report):
    """Result of `diagnose`: findings in the order of the step; `str` of it is the text.

    alarms: tensors of the outcome that the format spoils. notes: sentences behind the findings. spread: the one on
    round-off that no line explains. is_stopped: whether Ctrl-C ended the search. untried: a sentence on what there was
    no time for. types: calls that PyTorch refuses in 16 bits. unjudged: results that are nothing but round-off in FP32
    too, as the rest of a sentence. judges_gradients: whether all gradients together are not among these.
    """

    kind: str = "diagnose"
    alarms: tuple[Alarm, ...] = ()
    notes: tuple[str, ...] = ()
    spread: str = ""
    runs: int = 0
    loss: float | None = None
    loss_in_fp32: float | None = None
    is_stopped: bool = False
    untried: str = ""
    unjudged: str = ""
    judges_gradients: bool = True
    types: Finding | None = None

    @property
    def is_healthy(self) -> bool:
        return not self.alarms and not self.findings

    @property
    def verdict(self) -> Verdict:
        parts = [*map(str, self.findings), self.spread, *self.notes, self._types_words, self.untried]
        return Verdict("\n\n".join(filter(None, parts)))

    @property
    def _types_words(self) -> str:
        told = self.types
        return "" if told is None else f"{told.change[0].upper()}{told.change[1:]}: {told.why}."

    @property
    def fault(self) -> Fault | None:
        """The first operation that an emulated policy makes infinite or NaN; a search has none."""
        return next((each.about for each in self.findings if isinstance(each.about, Fault)), None)


def placed(place: CallPlace | None) -> dict[str, Any]:
    """The line of a call, as a finding has it."""
    if place is None:
        return {}
    return {"place": Place(place.file, place.span.line, str(place)), "code": place.line_text}


def alarm_words(alarms: list[Alarm], loss: float | None, exact: float | None) -> str:
    """The loss beside FP32's, and the tensors that the format spoils."""
    parts = []
    if loss is not None and exact is not None:
        parts.append(f"the loss is {loss:.6g}, in FP32 {exact:.6g}")
    for reason, words in _REASONS.items():
        names = [alarm.distance.name for alarm in alarms if alarm.reason == reason and alarm.distance.name != "loss"]
        if names:
            others = f" and {len(names) - 1} more" if len(names) > 1 else ""
            worst = max(a.distance.error for a in alarms if a.reason == reason and a.distance.name != "loss")
            share = f"{100 * worst:.3g} %" if math.isfinite(worst) else "all"
            parts.append(words.format(f"{shown_name(names[0])}{others}", share))
    return "; ".join(parts)


_REASONS = {
    "not finite": "not finite: {0}",
    "round-off": "{0}: off by up to {1}, more than round-off explains",
    "amplified": "{0}: off by up to {1}, by amplified round-off",
    "change": "the change of {0}: off by up to {1}",
    "decision": "another decision in {1} of {0}",
}


def shown_name(name: str) -> str:
    """A tensor of an outcome as texts call it."""
    return {"output 1": "the model's output", "loss": "the loss"}.get(name, name)
