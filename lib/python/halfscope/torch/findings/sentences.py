"""Findings on a fault and on an update, for an emulated policy in `diagnose`, an emulation and a watch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from halfscope.formats import Format
from halfscope.torch.findings.fault import Fault
from halfscope.torch.findings.finding import Finding, placed_at
from halfscope.torch.findings.words import cause, why

_CALL = "print(halfscope.torch.diagnose(model, loss))"
_SEARCHES = f"no remedy was tried: {_CALL} searches for one"


def finding_of(fault: Fault, others: list[Fault], sure: str, change: str = "") -> Finding:
    """others: all faults of the step; change: what was tried and helped; without it the cause stands first."""
    text = why(fault, others)
    if change:
        text = f"{cause(fault)}. {text}".rstrip()
    return Finding(fault.kind, change or cause(fault), text, sure, fault, **placed_at(fault.made.site))


def seen_finding(fault: Fault, seen: str) -> Finding:
    """A finding of a run that goes on; seen: where."""
    known = [fault] if fault.forward is None else [fault.forward, fault]
    return finding_of(fault, known, f"{seen}; {_SEARCHES}")


def update_finding(names: list[str], optimizers: Iterable[Any], state: Format | None, sure: str) -> Finding:
    """Finding on weights that an update makes infinite or NaN; state: the optimizer's format, None for FP32."""
    lost = [
        (type(optimizer).__name__, group)
        for optimizer in optimizers
        for group in optimizer.param_groups
        if state is not None and group.get("eps") and state.round(group["eps"]) == 0
    ]
    verb = "is" if len(names) == 1 else "are"
    seen = f"{', '.join(names[:4])} {verb} infinite or NaN after the update, with finite gradients"
    cause = ""
    if lost and state is not None:
        name, group = lost[0]
        cause = (
            f"{name} divides by sqrt(v) + eps; eps {group['eps']:g} is 0 in {state.label}, and so is "
            f"v = {_second_moment(group)} of a small gradient: 0 / 0, or m / 0."
        )
    return Finding("update", seen, cause, sure, names)


def _second_moment(group: dict[str, Any]) -> str:
    """The state below the root after one step, by the optimizer's own options."""
    if "betas" in group:
        return "(1 - beta2) g^2"
    return "(1 - alpha) g^2" if "alpha" in group else "the sum of g^2"
