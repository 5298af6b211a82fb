"""Findings of the doctor's search: a tried remedy for each fault of the step, or what nothing healed."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from halfscope.reporting import Finding, Place
from halfscope.torch.check.reachable_objects import reachable_objects
from halfscope.torch.check.subject import Subject
from halfscope.torch.doctor.find_remedy import find_remedy
from halfscope.torch.doctor.report import Advice, Examined

SCALE = "loss scale"
UNHEALED = "unhealed"
ROUND_OFF = "round-off"
_SITE = re.compile(r"(?P<file>[^:,]+):(?P<line>\d+)")


def examine(subject: Subject, seconds: float) -> Examined:
    return find_remedy(
        subject.model, subject.closure, subject.name, optimizer=subject.optimizers, seconds=seconds
    )  # fmt: skip


def is_healed(found: Examined) -> bool:
    """Whether the step is right, or was with the remedies that were tried."""
    return found.is_healthy or not (found.notes or any(advice.kind == "" for advice in found.advice))


def findings_of(found: Examined, subject: Subject) -> list[Finding]:
    """In the order of the step; a note that names no line comes last."""
    files = _files(subject)
    noted = [Finding(ROUND_OFF, note, sure="tried, as it says", about=found) for note in found.notes]
    return [*(_finding(advice, files) for advice in found.advice), *noted]


def _finding(advice: Advice, files: list[str]) -> Finding:
    return Finding(
        advice.kind or UNHEALED, advice.change, advice.why, advice.sure, about=advice, code=advice.code,
        place=_place(advice, files),
    )  # fmt: skip


def _place(advice: Advice, files: list[str]) -> Place | None:
    """The line of the call, with the path of its file where that is known."""
    site = _SITE.search(advice.site)
    if site is None:
        return None
    name = site["file"].strip()
    known = [*(edit.file for edit in advice.edits), *files]
    path = next((file for file in known if Path(file).name == name), name)
    return Place(path, int(site["line"]), advice.site)


def _files(subject: Subject) -> list[str]:
    """Files of the model's classes and of the functions that the step can reach."""
    functions = [inspect.unwrap(type(module).forward) for module in subject.model.modules()]
    functions += [each for each in reachable_objects(subject.closure.loss) if callable(each)]
    codes = (getattr(function, "__code__", None) for function in functions)
    return list(dict.fromkeys(code.co_filename for code in codes if code is not None))
