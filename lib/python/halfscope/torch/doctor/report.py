"""Words of a diagnosis: what to type, why, and what was tried."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from halfscope.torch.doctor.failures import Alarm
from halfscope.torch.doctor.typing_edits import Edit, typed
from halfscope.torch.findings.finding import wrapped


@dataclass(frozen=True)
class Advice:
    """One cause with its remedy. kind: the family of the remedy; empty where none was found."""

    kind: str
    change: str
    why: str
    sure: str
    site: str = ""
    code: str = ""
    edits: tuple[Edit, ...] = ()

    def typed(self, file: str | Path) -> str | None:
        """The source of a file with the remedy typed; None where the remedy is no change of that file."""
        own = [edit for edit in self.edits if Path(edit.file) == Path(file)]
        return typed(Path(file).read_text(), own) if own else None

    def __str__(self) -> str:
        place = f"{self.site}: " if self.site else ""
        code = f"\n  Now: {self.code}" if self.code else ""
        return f"{place}{self.change}{code}\n  Why: {self.why}\n  Sure: {self.sure}"


@dataclass(frozen=True)
class Examined:
    """Result of `find_remedy`: advice in the order of the step; `str` of it is the text."""

    advice: tuple[Advice, ...]
    about: str
    alarms: tuple[Alarm, ...] = ()
    notes: tuple[str, ...] = field(default=())
    runs: int = 0

    @property
    def is_healthy(self) -> bool:
        return not self.alarms and not self.advice

    def __str__(self) -> str:
        return "\n\n".join(map(wrapped, [*map(str, self.advice), *self.notes, self.about]))

    def __repr__(self) -> str:
        return f"<Examined: {len(self.advice)} advice, {self.runs} runs>"


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
            parts.append(
                words.format(f"{_name(names[0])}{others}", f"{100 * worst:.3g} %" if math.isfinite(worst) else "all")
            )
    return "; ".join(parts)


_REASONS = {
    "not finite": "not finite: {0}",
    "round-off": "{0}: off by up to {1}, more than round-off explains",
    "amplified": "{0}: off by up to {1}, by amplified round-off",
    "change": "the change of {0}: off by up to {1}",
    "decision": "another decision in {1} of {0}",
}


def _name(name: str) -> str:
    return {"output 1": "the model's output"}.get(name, name)
