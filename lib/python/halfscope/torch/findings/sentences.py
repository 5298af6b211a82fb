"""Findings on a fault and on an update, for `diagnose`, for the reports of an emulation, and for those of a watch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from halfscope.formats import Format
from halfscope.torch.findings.fault import Fault
from halfscope.torch.findings.finding import Finding, located
from halfscope.torch.findings.remedies import Remedy, remedies_of
from halfscope.torch.findings.words import why

_CALL = "print(halfscope.torch.diagnose(model, loss))"


def finding_of(fault: Fault, others: list[Fault], remedy: Remedy, sure: str) -> Finding:
    """others: all faults of the step; sure: what was tried."""
    change, code = located(fault.made.site, remedy.advice(fault))
    return Finding(fault.kind, change, why(fault, others), sure, fault, remedy.name, code)


def untried_finding(fault: Fault, seen: str) -> Finding:
    """A finding of a run that goes on; seen: where."""
    sure = f"{seen}; the remedy was not tried: {_CALL} tries it"
    known = [fault] if fault.forward is None else [fault.forward, fault]
    return finding_of(fault, known, remedies_of(fault)[0], sure)


def update_finding(names: list[str], optimizers: Iterable[Any], state: Format | None, sure: str) -> Finding:
    """On weights that an update makes infinite or NaN; state: the optimizer's format, None of FP32."""
    lost = [
        (type(optimizer).__name__, group)
        for optimizer in optimizers
        for group in optimizer.param_groups
        if state is not None and group.get("eps") and state.round(group["eps"]) == 0
    ]
    verb = "is" if len(names) == 1 else "are"
    seen = f"{', '.join(names[:4])} {verb} infinite or NaN after the update, with finite gradients"
    change = "keep weights and optimizer state in FP32"
    if lost and state is not None:
        name, group = lost[0]
        change = (
            f"keep the state of {name} in FP32 (FP32 weights under autocast); eps=1e-4 avoids the NaN, and makes small "
            "updates smaller"
        )
        seen += (
            f": {name} divides by sqrt(v) + eps; eps {group['eps']:g} is 0 in {state.label}, and so is "
            f"v = {_second_moment(group)} of a small gradient: 0 / 0, or m / 0"
        )
    return Finding("update", change, f"{seen}.", sure, names, "FP32 state")


def _second_moment(group: dict[str, Any]) -> str:
    """The state below the root after one step, by the optimizer's own options."""
    if "betas" in group:
        return "(1 - beta2) g^2"
    return "(1 - alpha) g^2" if "alpha" in group else "the sum of g^2"
