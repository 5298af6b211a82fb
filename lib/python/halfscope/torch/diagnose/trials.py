"""FP32 for the operations of a fault, tried in an emulated step until no fault is left."""

from __future__ import annotations

import math
from collections.abc import Iterator

from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.findings.fault import Fault, OperationNote
from halfscope.torch.findings.finding import Finding, called
from halfscope.torch.findings.magnitudes import NEAR
from halfscope.torch.findings.sentences import finding_of

_MOST_FAULTS, _MOST_SOURCES = 6, 3
_OUTPUT = 0.1  # relative error that a change may leave in the model's result, and in the loss
_UNTRIED = "seen in the step; no change was tried, since the weights have 16 bits themselves"

Trial = frozenset[str]  # rows of operations in FP32


def faults_of(outcome: Outcome) -> list[Fault]:
    """Faults that are worth a finding."""
    assert outcome.recorder is not None
    return [fault for fault in outcome.recorder.faults if not fault.is_harmless]


def excuse_unused(outcome: Outcome, exact: Outcome) -> None:
    """Faults that nothing uses are harmless in a step whose loss and gradients are those of FP32."""
    is_finite = outcome.is_finite and outcome.gradients.keys() == exact.gradients.keys()
    if outcome.recorder is None or not is_finite or not _is_near(outcome.loss, exact.loss, NEAR):
        return
    pairs = [(outcome.gradients[name], gradient) for name, gradient in exact.gradients.items()]
    error = math.hypot(*(float((found - other).norm()) for found, other in pairs))
    if error <= NEAR * math.hypot(*(float(other.norm()) for _, other in pairs)):
        for fault in outcome.recorder.faults:
            fault.end_unused()


def _is_near(loss: float | None, exact: float | None, tolerance: float) -> bool:
    return loss is None or exact is None or math.isclose(loss, exact, rel_tol=tolerance, abs_tol=1e-3)


def mend(session: Session, first: Outcome, exact: Outcome) -> list[Finding]:
    """A finding per fault, in the order of the step; each with FP32 for those before it in place."""
    if session.is_half:
        return [_finding(fault, first, _UNTRIED) for fault in faults_of(first)[:_MOST_FAULTS]]
    findings: list[Finding] = []
    outcome, wide = first, Trial()
    for _ in range(_MOST_FAULTS):
        faults = faults_of(outcome)
        if not faults:
            break
        mended = next(_mended(session, faults[0], wide, exact), None)
        if mended is None:
            tried = " and ".join(words for words, _ in _candidates(faults[0]))
            findings.append(_finding(faults[0], outcome, f"tried to {tried}: the fault was still there"))
            break
        words, wide, after = mended
        findings.append(_finding(faults[0], outcome, _tried(after, exact), words))
        outcome = after
    return findings


def _mended(session: Session, fault: Fault, wide: Trial, exact: Outcome) -> Iterator[tuple[str, Trial, Outcome]]:
    for words, rows in _candidates(fault):
        trial = wide | frozenset(rows)
        outcome = session.run(trial)
        excuse_unused(outcome, exact)
        left = faults_of(outcome)
        if not any(_is_same(fault, other) for other in left) and (left or _keeps_output(outcome, exact)):
            yield words, trial, outcome


def _candidates(fault: Fault) -> list[tuple[str, list[str]]]:
    """The operation in FP32; with what made its operands; with what its result makes infinite or NaN."""
    made = fault.made
    found = [(f"compute {called(made.operation)} in FP32", [made.row])]
    before = [source for source in fault.sources if source.row != made.row][:_MOST_SOURCES]
    for number in range(1, len(before) + 1):
        found.append(_together(before[number - 1], made, before[:number]))
    behind = [each for each in fault.passes if each.row != made.row and not each.is_gradient]
    if behind:
        found.append(_together(made, behind[-1], [*behind, made]))
    return found


def _together(first: OperationNote, last: OperationNote, every: list[OperationNote]) -> tuple[str, list[str]]:
    where = f" ({first.site})" if first.site is not None and str(first.site) != str(last.site) else ""
    rows = list(dict.fromkeys([first.row, last.row, *(made.row for made in every)]))
    return f"compute {called(first.operation)}{where} to {called(last.operation)} in FP32", rows


def _keeps_output(outcome: Outcome, exact: Outcome) -> bool:
    """Whether the model's result and the loss are those of FP32, but for roundings."""
    assert outcome.recorder is not None
    is_near = _is_near(outcome.loss, exact.loss, _OUTPUT)
    return outcome.is_finite and is_near and outcome.recorder.output_error < _OUTPUT


def _is_same(fault: Fault, other: Fault) -> bool:
    return (fault.made.row, fault.region) == (other.made.row, other.region)


def _finding(fault: Fault, outcome: Outcome, sure: str, change: str = "") -> Finding:
    assert outcome.recorder is not None
    return finding_of(fault, outcome.recorder.faults, sure, change)


def _tried(outcome: Outcome, exact: Outcome) -> str:
    left = len(faults_of(outcome))
    if left:
        return f"tried, and this fault is gone; {left} more follow{'s' * (left == 1)} in the step"
    text = "tried, and the step is finite"
    if outcome.loss is not None and exact.loss is not None and math.isfinite(outcome.loss):
        text += f": loss {outcome.loss:.6g}, in FP32 {exact.loss:.6g}"
    return text
