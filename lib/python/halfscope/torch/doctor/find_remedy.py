"""Search for what to change in a step that a format spoils: what is told was tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.doctor.advice_words import (
    extent,
    far_results,
    healthy,
    of_two_types,
    other_decisions,
    refused,
    told,
    undecided,
)
from halfscope.torch.doctor.diagnosing import Course
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.failures import is_finite
from halfscope.torch.doctor.ill_before import in_fp32, state_before
from halfscope.torch.doctor.program import Program
from halfscope.torch.doctor.progress import Progress
from halfscope.torch.doctor.report import Diagnosis

_AUTOCAST = {"autocast": "fp16", "autocast_cuda": "fp16", "autocast_bf16": "bf16"}
_PURE = "_pure"  # names of policies whose state has the format too, as after model.half()


def searched_format(name: Any) -> Format | None:
    """The format of a name that the search can run a step in; None of a policy, of blocks, and of random rounding."""
    if not isinstance(name, str):
        return None
    try:
        format = Format.of(_format_name(name))
    except ValueError:
        return None
    return None if format.name == "fp32" or format.is_stochastic else format


def _format_name(name: str) -> str:
    return _AUTOCAST.get(name, name.removesuffix(_PURE))


def program_of(model: torch.nn.Module, loss: Callable[[], Any], name: str, optimizers: list, scale: float) -> Program:
    """The step as it is to be run. name: of a format, or of torch.autocast. Raises ValueError for an unknown one."""
    under = name in _AUTOCAST
    return Program(model, loss, optimizers, Format.of(_format_name(name)), scale, under, not under)


def find_remedy(program: Program, progress: Progress, quick: bool = False) -> Diagnosis:
    """Runs a step in FP32 and in a format, and, where they part, again and again with changes, until one heals it.

    A remedy is told if the step with it was FP32's but for round-off, in its loss, results, gradients, changes and
    decisions, if FP32's own step stayed as it was, and if both held again on slightly smaller inputs. Ctrl-C ends the
    search, and what is known by then is told.
    """
    about = Examination(program, progress, quick)
    try:
        report = _examined(about)
    finally:
        progress.end()
        program.copies.let_go()
    losses = [getattr(about, name).outcome.loss if hasattr(about, name) else None for name in ("narrow", "exact")]
    return replace(
        report, loss=losses[0], loss_in_fp32=losses[1], is_stopped=progress.is_stopped, untried=progress.untried_words
    )


def _examined(about: Examination) -> Diagnosis:
    program = about.program
    ill = state_before(program)
    if ill is not None:
        return Diagnosis(findings=(ill,), about=extent(about), runs=program.runs)
    about.begin()
    if not is_finite(about.exact.outcome):
        return Diagnosis(findings=(in_fp32(about),), about=extent(about), runs=program.runs)
    about.look()
    if not about.alarms:
        far = far_results(about)
        decisions = "" if about.quick else other_decisions(about)
        notes = tuple(filter(None, [healthy(about, far), decisions, refused(program)]))
        return Diagnosis(
            about=extent(about), notes=notes, runs=program.runs, unjudged=far.words,
            judges_gradients=not far.has_gradients, types=of_two_types(about),
        )  # fmt: skip
    if about.progress.is_cut and all(alarm.reason in ("round-off", "amplified") for alarm in about.alarms):
        return undecided(about, "the noise that may explain it was known")
    course = Course(about)
    if not about.quick:
        course.search()
    if course.is_out_of_time and course.is_only_amplified and not course.remedies:
        return undecided(about, "it was known whether a few lines make it")
    return told(about, course)
