"""The loss scale to type, by the gradients of one step in FP32, and the trial of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from halfscope import ScaleAdvice
from halfscope.reporting import Finding
from halfscope.torch.check.fp32_step import Fp32Step
from halfscope.torch.check.subject import Subject
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.failures import Alarm
from halfscope.torch.doctor.progress import Progress
from halfscope.torch.words import counted

_UNTRIED = "computed from the gradients of one step in FP32, and not tried"


def wants_scale(subject: Subject, advice: ScaleAdvice) -> bool:
    """Whether the scale in use does not fit all gradients, though another one fits more."""
    if advice.recommended_scale_log2 is None:
        return bool(advice.outliers)
    window = advice.joint_window_log2
    return window is None or not window[0] <= math.log2(subject.scale) <= window[1]


def scale_words(subject: Subject, step: Fp32Step) -> str:
    """The extent of the look at gradients, and the scales that fit them."""
    advice = step.advice
    words = f"{counted(step.tensors, 'gradient')} of layers and weights in FP32"
    left = f"; {counted(len(step.unreadable), 'tensor')} could not be read" if step.unreadable else ""
    if advice.joint_window_log2 is None:
        return f"{words}: {advice.verdict.splitlines()[0].rstrip(':')}{left}"
    low, high = advice.joint_window_log2
    return f"{words}: scales 2^{low} to 2^{high} fit, and the step has {subject.scale:g}{left}"


@dataclass(frozen=True)
class ScaleTrial:
    """The finding on a scale, with what became of the step at it."""

    finding: Finding
    is_healed: bool


def tried(subject: Subject, advice: ScaleAdvice, progress: Progress | None) -> ScaleTrial:
    """Computes the step at the advised scale, where it can be set from outside. progress: None without the time."""
    finding, log2 = advice.report.findings[0], advice.recommended_scale_log2
    alarms = None if log2 is None or progress is None else _alarms_at(subject, 2.0**log2, progress)
    words = _UNTRIED if alarms is None or log2 is None else _words(alarms, log2)
    return ScaleTrial(replace(finding, sure="; ".join(filter(None, [words, finding.sure]))), alarms == [])


def confirmed(finding: Finding, first: Finding) -> Finding:
    """The finding with the reason of the doctor's, which has shown that the scale in use will not do."""
    return replace(
        finding, change=finding.change.partition("; scale 1 would do too")[0], why=f"{first.why}; {finding.why}"
    )


def _words(alarms: list[Alarm], log2: int) -> str:
    if not alarms:
        return f"tried at 2^{log2}: every result and gradient is FP32's but for round-off"
    named = sorted({alarm.distance.name for alarm in alarms})
    return f"tried at 2^{log2}: not healed by it alone ({', '.join(named[:3])}{'...' if len(named) > 3 else ''})"


def _alarms_at(subject: Subject, scale: float, progress: Progress) -> list[Alarm] | None:
    """None where the scale of the step cannot be changed from outside."""
    if subject.makes_backward and not isinstance(subject.scaler, torch.amp.GradScaler):
        return None
    scaler = subject.scaler
    if scaler is not None:
        subject.closure.prepare = lambda: scaler.load_state_dict({**scaler.state_dict(), "scale": scale})
    try:
        about = Examination(subject.program(1.0 if scaler is not None else scale), progress)
        about.begin()
        about.look()
        return about.alarms
    finally:
        subject.closure.prepare = lambda: None
        subject.closure.restore()
