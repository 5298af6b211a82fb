"""Findings of the doctor's search: a tried remedy for each fault of the step, or what nothing healed."""

from __future__ import annotations

from dataclasses import replace

from halfscope.reporting import Finding
from halfscope.torch.check.subject import Subject
from halfscope.torch.doctor.find_remedy import find_remedy
from halfscope.torch.doctor.progress import Progress
from halfscope.torch.doctor.report import Diagnosis

SCALE = "loss scale"
UNHEALED = "unhealed"
ROUND_OFF = "round-off"


def examine(subject: Subject, progress: Progress) -> Diagnosis:
    return find_remedy(subject.program(1.0), progress)


def is_healed(found: Diagnosis) -> bool:
    """Whether the step is right, or was with the remedies that were tried."""
    return found.is_healthy or not (found.spread or any(advice.kind == "" for advice in found.findings))


def findings_of(found: Diagnosis) -> list[Finding]:
    """Findings in the order of the step; round-off that no line explains comes last."""
    told = [replace(advice, kind=advice.kind or UNHEALED, about=advice) for advice in found.findings]
    return [*told, _spread(found)] if found.spread else list(told)


def _spread(found: Diagnosis) -> Finding:
    change = "no line is to change: train in FP32, or with larger batches"
    return Finding(ROUND_OFF, change, found.spread, f"{found.runs} runs of the step", about=found)
