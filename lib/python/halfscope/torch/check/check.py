"""`check`: what to type so that a step is right in a format; one call for a model, its loss and its optimizer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from halfscope.reporting import Finding, Report
from halfscope.torch.check.constants import constants
from halfscope.torch.check.fp32_step import Fp32Step, run_in_fp32
from halfscope.torch.check.ill_state import ill_state
from halfscope.torch.check.loss_scale import confirmed, scale_words, tried, wants_scale
from halfscope.torch.check.lost_updates import count_updates, update_findings
from halfscope.torch.check.notebook import Notebook, Rank
from halfscope.torch.check.own_steps import run_twice
from halfscope.torch.check.subject import Subject, subject_of
from halfscope.torch.check.tried_remedies import ROUND_OFF, SCALE, UNHEALED, examine, findings_of, is_healed
from halfscope.torch.doctor.needed_memory import refuse_without_memory
from halfscope.torch.doctor.progress import Progress, check_seconds
from halfscope.torch.doctor.report import Diagnosis
from halfscope.torch.findings.finding import in_percent
from halfscope.torch.words import counted, number

_LEAST = 0.5  # share of the seconds that the search has, however long the looks before it took
_SCALE_RUNS = 3  # that a trial makes at least: FP32, noise, the format
_LATE = {UNHEALED: Rank.UNHEALED, ROUND_OFF: Rank.UNHEALED}


def check(
    model: torch.nn.Module,
    loss: Callable[[], Any],
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
    format: str = "fp16",
    *,
    seconds: float = 60.0,
) -> Report:
    """Says what to type so that a step is right in a format, why, and what was tried; or that nothing is to change.

    It looks, in this order, at weights, buffers and optimizer state before the step; at the step as its script has it,
    in FP32, and in the format, with changes until one heals it (`diagnose`); at the loss scale that the step's
    gradients ask for; at updates that weights in the format lose; and at constants (`lint`) that the step has not shown
    to be harmless. Weights, buffers, gradients, optimizers, random generators, loss scalers and schedules are left as
    they were.

    loss: computes the loss of one batch and returns it; or makes a whole step, with backward pass and update. It is run
        as it is, with its own autocast and casts. The batch must be the same in each call.
    optimizer: one or several; by default those that `loss` can reach and that have weights of the model.
    format: "fp16", "bf16" or another format, in which all of the step is computed, as after `model.half()`; "autocast"
        or "autocast_bf16": as within torch.autocast. A step that asks for 16 bits itself is computed as it asks.
    seconds: of the check; the search for remedies has half of them at least. A run that by the time of earlier ones
        would end later is not begun; then what is known is told, as after Ctrl-C, and what was not tried.

    Raises TypeError for a model, a loss or an optimizer that is none, ValueError for an unknown format and for
    negative seconds, MemoryError where the machine has not the memory that any search takes.
    """
    check_seconds(seconds, "check")
    subject = subject_of(model, loss, optimizer, format)
    try:
        refuse_without_memory("check", model)  # whether the step updates is not known yet
        return _Course(subject, Progress(seconds)).report()
    finally:
        subject.closure.restore()


class _Course:
    """The looks of a check, one after the other."""

    def __init__(self, subject: Subject, progress: Progress) -> None:
        self._subject, self._progress, self._notes = subject, progress, Notebook()
        self._exact: Fp32Step | None = None
        self._found: Diagnosis | None = None
        self._has_updates = False

    def report(self) -> Report:
        notes = self._notes
        notes.part("state before the step", self._look_at_state)
        if any(rank is Rank.STATE for rank, _ in notes.findings):
            notes.unseen.append(("step", "its state is ill before it"))
        elif notes.part("step as its script has it", self._look_at_own_step) and not notes.findings:
            self._look_at_step()
        elif notes.findings:
            notes.unseen.append(("step in the format", "not before what stands above is changed"))
        notes.part("constants", self._look_at_constants)
        notes.unseen.append(("others", "other batches, and damage that takes many steps"))
        is_whole = self._found is not None and self._found.is_healthy
        return notes.report(self._healthy_words() if is_whole else "")

    def _look_at_step(self) -> None:
        notes = self._notes
        if not self._subject.reaches_weights:
            notes.unseen.append(("backward pass", "no loss that depends on a weight came back"))
        notes.part("step in FP32", self._look_at_fp32)
        notes.part("step", self._look_for_remedies)
        if self._exact is not None and self._exact.is_finite:
            notes.part("loss scale", self._look_at_scale)
            notes.part("updates", self._look_at_updates)

    def _look_at_state(self) -> None:
        findings, looked = ill_state(self._subject)
        self._notes.add(Rank.STATE, findings)
        self._notes.looked.append(
            ("state before the step", f"{counted(looked, 'tensor')} of weights, buffers, optimizers")
        )

    def _look_at_own_step(self) -> None:
        self._notes.add(Rank.ERROR, run_twice(self._subject))

    def _look_at_fp32(self) -> None:
        self._exact = run_in_fp32(self._subject)

    def _look_for_remedies(self) -> None:
        self._found = examine(self._subject, self._progress.part(_LEAST * self._progress.seconds))
        if self._found.is_stopped:
            self._progress.stop()
        if self._found.untried:
            self._notes.unseen.append(("search", self._found.untried.rstrip(".")))
        if self._found.types is not None:
            self._notes.add(Rank.UNHEALED, [self._found.types])
        for finding in findings_of(self._found):
            self._notes.add(_LATE.get(finding.kind, Rank.FAULT), [finding])
        self._notes.looked.append(("step", self._found.about.rpartition("Looked at: ")[2].rstrip(".")))

    def _look_at_scale(self) -> None:
        """The advised scale takes the place of the doctor's, which is the first that was enough, where it heals too."""
        assert self._exact is not None
        notes, advice = self._notes, self._exact.advice
        if self._found is not None and not self._found.judges_gradients:
            notes.unseen.append(("loss scale", "the gradients are nothing but round-off in FP32 too"))
            return
        notes.looked.append(("loss scale", scale_words(self._subject, self._exact)))
        first = next((finding for _, finding in notes.findings if finding.kind == SCALE), None)
        if not wants_scale(self._subject, advice) and (first is None or advice.recommended_scale_log2 is None):
            return
        is_late = not self._progress.has_time(_SCALE_RUNS)
        trial = tried(self._subject, advice, None if is_late else self._progress.part())
        if trial.is_healed:  # so that no other change of the step is needed
            notes.findings = [entry for entry in notes.findings if entry[0] not in (Rank.FAULT, Rank.UNHEALED)]
        if trial.is_healed or first is None:
            notes.add(Rank.SCALE, [trial.finding if first is None else confirmed(trial.finding, first)])

    def _look_at_updates(self) -> None:
        assert self._exact is not None
        if not self._exact.updates:
            self._notes.unseen.append(("updates", "the step in FP32 changed no weight"))
            return
        updates = count_updates(self._subject, self._exact.updates, self._subject.format.name)
        self._has_updates = True
        label = self._subject.format.label
        weights = f"{label} weights" if self._subject.stores_format else f"{label} weights, which this step has not,"
        words = f"{updates.nonzero} elements; {weights} lose {in_percent(updates.share)} of them"
        self._notes.looked.append(("updates", words))
        if not any(finding.kind == "state" for _, finding in self._notes.findings):
            self._notes.add(Rank.UPDATES, update_findings(self._subject, self._exact.updates, updates))

    def _look_at_constants(self) -> None:
        is_right = self._found is not None and is_healed(self._found)
        found = constants(self._subject, is_right=is_right, has_updates=self._has_updates)
        self._notes.add(Rank.CONSTANT, [each for each in found.left if not self._is_cured(each)])
        text = found.about.removeprefix("Looked at: ").partition("; no step was made")[0]
        lines = {finding.place.line for _, finding in self._notes.findings if finding.place is not None}
        refuted = [each for each in found.refuted if each.place is None or each.place.line not in lines]
        where = "with the changes above" if lines else "in this step"
        harmless = f"; {number(refuted, 'lost number')} did no harm {where}" if refuted else ""
        self._notes.looked.append(("constants", f"{text}{harmless}"))

    def _is_cured(self, constant: Finding) -> bool:
        """Whether the doctor keeps the optimizer's state in FP32 already."""
        told = (finding.change for _, finding in self._notes.findings if finding.kind == "state")
        return constant.place is None and "optimizer" in constant.change and any("optimizer" in each for each in told)

    def _healthy_words(self) -> str:
        part = "step" if self._subject.reaches_weights else "forward pass"
        text = f"the {part} in {self._subject.format.label} is FP32's but for round-off."
        unjudged = "" if self._found is None else self._found.unjudged
        return f"{text} No verdict on {unjudged}." if unjudged else text
