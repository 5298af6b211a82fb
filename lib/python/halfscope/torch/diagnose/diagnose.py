"""`diagnose`: which operation makes NaN, at which line, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.diagnose.silent.lost_digits import LOST_DIGITS
from halfscope.torch.diagnose.silent.silent import Steps, findings_of
from halfscope.torch.diagnose.silent.silent_table import SILENT, STORED
from halfscope.torch.diagnose.trials import excuse_unused, faults_of, mend
from halfscope.torch.diagnose.wrong_in_fp32 import finding_in_fp32
from halfscope.torch.emulate.arithmetic.attention import parse_attention
from halfscope.torch.emulate.emulation import check_model
from halfscope.torch.emulate.training import Trainee
from halfscope.torch.emulate.words import without_rule_words
from halfscope.torch.findings.fault import Fault
from halfscope.torch.findings.finding import Finding, wrapped
from halfscope.torch.policy import Policy
from halfscope.torch.steps.optimizers import optimizers_of
from halfscope.torch.tensors.elements import HALF


class Diagnosis:
    """Result of `diagnose`: findings, the first one first; `str` of it is the text."""

    def __init__(self, findings: list[Finding], about: str, runs: int) -> None:
        self.findings, self.about, self.runs = tuple(findings), about, runs

    @property
    def fault(self) -> Fault | None:
        """The first fault: elements that are not finite where FP32's are."""
        return next((found.about for found in self.findings if isinstance(found.about, Fault)), None)

    def __str__(self) -> str:
        return "\n\n".join(map(wrapped, [*map(str, self.findings), self.about]))

    def __repr__(self) -> str:
        return f"<Diagnosis: {len(self.findings)} finding{'s' * (len(self.findings) != 1)}>"


def diagnose(
    model: torch.nn.Module,
    loss_or_step: Callable[[], Any],
    format: str | Mapping[str, str] = "fp16",
    *,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] = (),
    scale: float = 1.0,
    accumulate: str | None = None,
    attention: str = "fused",
) -> Diagnosis:
    """Names the first operation that goes wrong in a format, its line, its size, and a remedy that was tried.

    The step is computed in FP32 and in the format, side by side, once, and once more for each remedy that is tried.
    Weights, buffers, optimizer, gradients and the random numbers of PyTorch, NumPy and Python are left as they were;
    other attributes of modules are not.

    loss_or_step: computes the loss of one batch and returns it; or makes a whole step, with backward pass and update,
        and may return the loss. The batch must be the same in each call. The loss of a mapping or of a model's output
        is its `loss`, that of a tuple or list the first number in it that has a gradient.
    format: "fp16", "bf16" or another format, or a policy as `emulate` has them.
    optimizer: where `loss_or_step` calls its `step`.
    accumulate: the order of products, as `emulate` has it: "split_k(2, fp16)".
    attention: scaled_dot_product_attention as `emulate` has it: "math" rounds the scores, as separate operations do.
    scale: the loss scale at which gradients are computed; at 1, an overflow of a gradient is none of the scaler's.

    Raises what `emulate` does.
    """
    check_model(model)
    policy = Policy(format, accumulate, {})
    parse_attention(attention)
    trainee = Trainee(model, optimizers_of(optimizer))
    session = Session(trainee, loss_or_step, policy, _format_of(model, policy), scale, attention)
    session.keep_gradients()
    try:
        exact = session.run_fp32()
        if session.is_half:  # that run is PyTorch's own in 16 bits, not one in FP32
            exact = replace(exact, loss=None, bad_gradients=[], bad_buffers=[], bad_weights=[])
        if not exact.is_finite:
            return Diagnosis([finding_in_fp32(session, exact)], _about(session, exact, exact), session.runs)
        outcome = session.run()
        excuse_unused(outcome, exact)
        steps = Steps(session, outcome, exact)
        findings = _of_lost_digits(steps) or [*mend(session, outcome, exact), *findings_of(STORED, steps)]
        if not findings:
            findings = findings_of(SILENT, steps)
        return Diagnosis(findings, _about(session, outcome, exact), session.runs)
    finally:
        session.close()


def _of_lost_digits(steps: Steps) -> list[Finding]:
    """Where lost digits come before the first fault, whose FP32 number is no large one, they are its cause."""
    faults = faults_of(steps.outcome)
    if not faults or faults[0].region == "forward" or faults[0].ratio >= 1:
        return []
    return findings_of([LOST_DIGITS], steps)


def _format_of(model: torch.nn.Module, policy: Policy) -> Format:
    """That of the activations; of the weights where these have 16 bits."""
    kinds = [HALF[parameter.dtype] for parameter in model.parameters() if parameter.dtype in HALF]
    formats = policy.base
    narrow = [name for name in (formats.activation, formats.weight, formats.master_weight) if name != "fp32"]
    return Format.of(kinds[0] if kinds else (narrow or ["fp32"])[0])


def _about(session: Session, outcome: Outcome, exact: Outcome) -> str:
    """The extent of the look: operations, losses, runs."""
    operations = 0 if outcome.recorder is None else outcome.recorder.operations
    text = f"Looked at: {operations} operations of one step in {session.format.label} beside FP32"
    if outcome is exact:
        text = "Looked at: one step in FP32"
    losses = [found.loss for found in (outcome, exact) if found.loss is not None and outcome is not exact]
    if len(losses) == 2:
        text += f"; loss {losses[0]:.6g}, in FP32 {losses[1]:.6g}"
    text += f"; loss scale {session.scale:g}; {session.runs} runs of the step."
    if outcome is not exact and not _harms(outcome):
        text += " Every number is finite."
    if outcome.emulation is not None and outcome.emulation.without_rule:
        text += f" {without_rule_words(outcome.emulation.without_rule)}"
    if not outcome.gradients:
        text += " The step returned no loss that depends on a weight: the backward pass was not looked at."
    return text


def _harms(outcome: Outcome) -> bool:
    return not outcome.is_finite or bool(outcome.recorder and outcome.recorder.faults)
