"""`find_remedy`: what to change in a step that a format spoils, found by trying it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.doctor.advice_words import extent, healthy, told
from halfscope.torch.doctor.diagnosing import Course
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.failures import is_finite
from halfscope.torch.doctor.ill_before import beyond_range, in_fp32, state_before
from halfscope.torch.doctor.program import Program
from halfscope.torch.doctor.report import Examined
from halfscope.torch.steps.optimizers import optimizers_of

_AUTOCAST = "autocast"


def find_remedy(
    model: torch.nn.Module,
    loss: Callable[[], Any],
    format: str = "fp16",
    *,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] = (),
    scale: float = 1.0,
    seconds: float = 60.0,
) -> Examined:
    """Runs a step in FP32 and in a format, and, where they part, again and again with changes, until one heals it.

    A remedy is told if the step with it was FP32's but for round-off, in its loss, results, gradients, changes and
    decisions, if FP32's own step stayed as it was, and if both held again on slightly smaller inputs.

    loss: computes the loss of one batch and returns it; or makes a whole step, and may return the loss. It is run as it
        is, with its own autocast and casts. The batch must be the same in each call.
    format: "fp16", "bf16" or another format, in which all of the step is computed, as after `model.half()`; "autocast"
        or "autocast_bf16": as within torch.autocast. A closure that asks for 16 bits itself is run as it asks.
    optimizer: where `loss` calls its `step`.
    scale: the loss scale of the gradients.
    seconds: of the search; then what is known by then is told.

    Raises ValueError for an unknown format, TypeError for a model that is none, or that is compiled or scripted.
    """
    program = _program(model, loss, format, optimizers_of(optimizer), scale)
    about = Examination(program, seconds)
    ill = state_before(program)
    if ill:
        return Examined((ill,), extent(about), runs=program.runs)
    about.begin()
    if not is_finite(about.exact.outcome):
        return Examined((in_fp32(about),), extent(about), runs=program.runs)
    large = beyond_range(program)
    if large:
        return Examined((large,), extent(about), runs=program.runs)
    about.look()
    if not about.alarms:
        return Examined((), f"{healthy(about)} {extent(about)}", runs=program.runs)
    course = Course(about)
    course.search()
    return told(about, course)


def _program(model: Any, loss: Any, format: str, optimizers: list, scale: float) -> Program:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"find_remedy: model is of type {type(model).__name__}; give a torch.nn.Module")
    if isinstance(model, torch.jit.ScriptModule) or hasattr(model, "dynamo_ctx"):
        raise TypeError("find_remedy: the model is compiled or scripted, so that no call is seen; give the eager model")
    if not callable(loss):
        raise TypeError(f"find_remedy: loss is of type {type(loss).__name__}; give a function that computes it")
    under = format == _AUTOCAST or format.startswith(f"{_AUTOCAST}_")
    name = format.removeprefix(_AUTOCAST).lstrip("_") or "fp16" if under else format
    return Program(model, loss, optimizers, Format.of(name), scale, under, not under)
