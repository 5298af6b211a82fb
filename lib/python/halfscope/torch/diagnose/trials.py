"""Remedies tried: the step is computed again with each, until no fault is left."""

from __future__ import annotations

import math

from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.events.change import Override
from halfscope.torch.findings.fault import Fault
from halfscope.torch.findings.finding import Finding
from halfscope.torch.findings.magnitudes import NEAR
from halfscope.torch.findings.remedies import Remedy, remedies_of
from halfscope.torch.findings.sentences import finding_of

_MOST_FAULTS, _MOST_TRIALS = 6, 4
_OUTPUT = 0.1  # relative error that a remedy may leave in the model's result
_UNTRIED = (
    "seen in the step; the remedy was not tried, since the weights have 16 bits themselves: diagnose model.float() in "
    "the same format to try it"
)


def is_told(fault: Fault) -> bool:
    """Whether a fault is worth a finding."""
    return not fault.is_harmless


def faults_of(outcome: Outcome) -> list[Fault]:
    assert outcome.recorder is not None
    return [fault for fault in outcome.recorder.faults if is_told(fault)]


def excuse_unused(outcome: Outcome, exact: Outcome) -> None:
    """Faults that nothing uses are harmless in a step whose loss and gradients are those of FP32."""
    is_finite = outcome.is_finite and outcome.gradients.keys() == exact.gradients.keys()
    if outcome.recorder is None or not is_finite or not _is_near(outcome.loss, exact.loss):
        return
    pairs = [(outcome.gradients[name], gradient) for name, gradient in exact.gradients.items()]
    error = math.hypot(*(float((found - other).norm()) for found, other in pairs))
    if error <= NEAR * math.hypot(*(float(other.norm()) for _, other in pairs)):
        for fault in outcome.recorder.faults:
            fault.end_unused()


def _is_near(loss: float | None, exact: float | None) -> bool:
    return loss is None or exact is None or math.isclose(loss, exact, rel_tol=NEAR, abs_tol=1e-3)


def mend(session: Session, first: Outcome, exact: Outcome) -> list[Finding]:
    """A finding per fault, in the order of the step; each with the remedies of those before it in place."""
    if session.is_half:
        return [_found((fault, first), remedies_of(fault)[0], _UNTRIED) for fault in faults_of(first)[:_MOST_FAULTS]]
    findings: list[Finding] = []
    outcome, overrides = first, dict[str, Override]()
    for _ in range(_MOST_FAULTS):
        faults = faults_of(outcome)
        if not faults:
            break
        finding, overrides, outcome, is_mended = _mend_one(session, faults[0], overrides, outcome, exact)
        findings.append(finding)
        if not is_mended:
            break
    return findings


def _mend_one(
    session: Session, fault: Fault, overrides: dict[str, Override], before: Outcome, exact: Outcome
) -> tuple[Finding, dict[str, Override], Outcome, bool]:
    fitting = remedies_of(fault)
    for remedy in fitting[:_MOST_TRIALS]:
        trial = {**overrides, **remedy.trial(fault)}
        outcome = session.run(trial)
        excuse_unused(outcome, exact)
        if remedy.keeps_output and not _keeps_output(outcome, exact):
            continue
        if not any(_is_same(fault, other) for other in faults_of(outcome)):
            left = len(faults_of(outcome))
            return _found((fault, before), remedy, _tried(remedy, outcome, exact, left)), trial, outcome, True
    names = ", ".join(remedy.name for remedy in fitting[:_MOST_TRIALS])
    finding = _found((fault, before), fitting[0], f"not sure: tried {names}, and the fault was still there")
    return finding, overrides, before, False


def _keeps_output(outcome: Outcome, exact: Outcome) -> bool:
    """Whether the model's result and the loss are those of FP32, but for roundings."""
    assert outcome.recorder is not None
    loss, other = outcome.loss, exact.loss
    is_near = loss is None or other is None or not math.isfinite(loss)  # by another fault
    is_near = is_near or math.isclose(loss, other, rel_tol=_OUTPUT, abs_tol=1e-3)  # type: ignore[arg-type]
    return is_near and outcome.recorder.output_error < _OUTPUT


def _is_same(fault: Fault, other: Fault) -> bool:
    return (fault.made.row, fault.region) == (other.made.row, other.region)


def _found(seen: tuple[Fault, Outcome], remedy: Remedy, sure: str) -> Finding:
    fault, outcome = seen
    assert outcome.recorder is not None
    return finding_of(fault, outcome.recorder.faults, remedy, sure)


def _tried(remedy: Remedy, outcome: Outcome, exact: Outcome, left: int) -> str:
    tried = f"tried{remedy.how}"
    text = f"{tried}, and this fault is gone"
    if left:
        return f"{text}; {left} more follow{'s' * (left == 1)} in the step"
    if outcome.is_finite:
        text = f"{tried}, and the step is finite"
    if outcome.loss is not None and exact.loss is not None and math.isfinite(outcome.loss):
        text += f": loss {outcome.loss:.6g}, in FP32 {exact.loss:.6g}"
    return text
