"""Diagnosis of a step under a policy that the search does not compute: emulated beside FP32, and observed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.diagnose.silent.lost_digits import LOST_DIGITS
from halfscope.torch.diagnose.silent.silent import Steps, findings_of
from halfscope.torch.diagnose.silent.silent_table import SILENT, STORED
from halfscope.torch.diagnose.trials import excuse_unused, faults_of, mend
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.failures import is_finite
from halfscope.torch.doctor.ill_before import in_fp32, state_before
from halfscope.torch.doctor.program import Program
from halfscope.torch.doctor.progress import Progress
from halfscope.torch.doctor.report import Advice, Diagnosis
from halfscope.torch.emulate.training import Trainee
from halfscope.torch.emulate.words import without_rule_words
from halfscope.torch.findings.finding import Finding
from halfscope.torch.policy import Policy
from halfscope.torch.tensors.elements import HALF


def observed(trainee: Trainee, step: Callable[[], Any], policy: Policy, scale: float, attention: str) -> Diagnosis:
    """Faults with FP32 tried for their operations; where there are none, what a finite step loses."""
    session = Session(trainee, step, policy, _format_of(trainee.model, policy), scale, attention)
    ill, runs = _ill(session)
    if ill is not None:
        about = f"Looked at: one step in FP32; loss scale {scale:g}; {runs} runs."
        return Diagnosis(findings=(ill,), about=about, runs=runs)
    session.keep_gradients()
    try:
        exact = session.run_fp32()
        outcome = session.run()
        excuse_unused(outcome, exact)
        steps = Steps(session, outcome, exact)
        findings = _of_lost_digits(steps) or [*mend(session, outcome, exact), *findings_of(STORED, steps)]
        findings = findings or findings_of(SILENT, steps)
        runs += session.runs
        return Diagnosis(
            findings=tuple(findings), about=_about(session, outcome, exact, runs), runs=runs, loss=outcome.loss,
            loss_in_fp32=exact.loss,
        )  # fmt: skip
    finally:
        session.close()


def _ill(session: Session) -> tuple[Advice | None, int]:
    """A finding on a state that is ill before the step, or on a step that FP32 spoils too; and the runs made."""
    trainee = session.trainee
    program = Program(trainee.model, session.step, trainee.optimizers, session.format, session.scale)
    about = Examination(program, Progress(float("inf")))
    ill = state_before(program)
    if ill is None:
        about.begin()
        ill = None if is_finite(about.exact.outcome) else in_fp32(about)
    return ill, program.runs


def _of_lost_digits(steps: Steps) -> list[Finding]:
    """Lost digits that cause the first fault: they come before it, and its FP32 value is small."""
    faults = faults_of(steps.outcome)
    if not faults or faults[0].region == "forward" or faults[0].ratio >= 1:
        return []
    return findings_of([LOST_DIGITS], steps)


def _format_of(model: torch.nn.Module, policy: Policy) -> Format:
    """The format of the activations; that of the weights where these have 16 bits."""
    kinds = [HALF[parameter.dtype] for parameter in model.parameters() if parameter.dtype in HALF]
    formats = policy.base
    narrow = [name for name in (formats.activation, formats.weight, formats.master_weight) if name != "fp32"]
    return Format.of(kinds[0] if kinds else (narrow or ["fp32"])[0])


def _about(session: Session, outcome: Outcome, exact: Outcome, runs: int) -> str:
    """The extent of the look: operations, policy, losses, runs."""
    assert outcome.recorder is not None
    text = f"Looked at: {outcome.recorder.operations} operations of one step in {session.format.label} beside FP32"
    text += f", by an emulation of {_named(session)}, for which no remedy is searched"
    losses = [found.loss for found in (outcome, exact) if found.loss is not None]
    if len(losses) == 2:
        text += f"; loss {losses[0]:.6g}, in FP32 {losses[1]:.6g}"
    text += f"; loss scale {session.scale:g}; {runs} runs of the step."
    if outcome.is_finite and not outcome.recorder.faults:
        text += " Every number is finite."
    if outcome.emulation is not None and outcome.emulation.without_rule:
        text += f" {without_rule_words(outcome.emulation.without_rule)}"
    if not outcome.gradients:
        text += " The step returned no loss that depends on a weight: the backward pass was not looked at."
    return text


def _named(session: Session) -> str:
    name = session.policy.name
    extra = [f"attention={session.attention}"] if session.attention != "fused" else []
    products = session.policy.base.products
    extra += [f"sums by {products}"] if products and products.startswith("split_k") else []
    return ", ".join([f"policy {name}" if name != "own" else "your policy", *extra])
