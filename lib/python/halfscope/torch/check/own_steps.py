"""The step as its script has it, in PyTorch's own arithmetic: whether it runs, and whether two runs are the same."""

from __future__ import annotations

import math
import traceback
from typing import Any

import torch

from halfscope.reporting import Finding, Place
from halfscope.torch.check.subject import Subject
from halfscope.torch.doctor.kept_state import kept_state
from halfscope.torch.doctor.nested_tensors import tensors_in
from halfscope.torch.doctor.outcomes import loss_in
from halfscope.torch.events.source import is_of_library, is_own

_SAME = 1e-4  # relative difference of two losses that the order of a GPU's sums explains


def run_twice(subject: Subject) -> list[Finding]:
    """Fills in the losses, who runs the backward pass, and the scaler; findings: an error, or two different losses."""
    try:
        subject.losses = tuple(_loss(subject) for _ in range(2))
    except Exception as error:
        return [_failed(error)]
    first, second = subject.losses
    if math.isnan(first) and not subject.returns_tensors and not subject.makes_backward:
        why = "the function returned no tensor and made no backward pass: there is nothing to compare"
        return [Finding("loss", "return the loss, as a tensor", why, "run twice; the format was not tried")]
    if math.isclose(first, second, rel_tol=_SAME, abs_tol=1e-12) or not (math.isfinite(first) or math.isfinite(second)):
        return []
    why = f"two calls from the same weights, buffers and random numbers gave a loss of {first:.6g} and {second:.6g}"
    change = "compute the loss of one batch, the same in each call"
    return [Finding("batch", change, why, "run twice; the format was not tried")]


def _loss(subject: Subject) -> float:
    """NaN of a step that returns none."""
    used: list[Any] = []
    subject.closure.prepare, subject.closure.detaches = subject.closure.noting_scaler(used), False
    try:
        with kept_state(subject.model, list(_tensors(subject.model)), subject.optimizers):
            value = _run(subject)
    finally:
        subject.closure.prepare = lambda: None
        subject.closure.restore()
    subject.scaler = next((each for each in used if each.get_scale() != 1), None)
    return value


def _run(subject: Subject) -> float:
    weights = [weight for weight in subject.model.parameters() if weight.requires_grad]
    made: list[torch.Tensor] = []  # weights that a backward pass has given a gradient
    handles = [weight.register_post_accumulate_grad_hook(made.append) for weight in weights]
    try:
        result = subject.closure()
        loss = loss_in(result)
        subject.returns_tensors, subject.makes_backward = bool(tensors_in(result)), bool(made)
        subject.closure.detaches = bool(made) and all(weight.grad is None for weight in weights)
        if loss is not None and loss.requires_grad and not made:
            loss.float().sum().backward()
        subject.reaches_weights = bool(made)
    finally:
        for handle in handles:
            handle.remove()
    return math.nan if loss is None else float(loss.detach().float().sum())


def _tensors(model: torch.nn.Module) -> Any:
    yield from model.parameters()
    yield from model.buffers()


def _failed(error: Exception) -> Finding:
    """Finding on a step that ends with an error: the last line of the user's own source."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not is_own(frame.filename)]
    own = [frame for frame in frames if not is_of_library(frame.filename)]
    words = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {words[0]}" if words else type(error).__name__
    last = own[-1] if own else None
    return Finding(
        "error", "make the step run first, then check again", what, "run as its script has it; no format was tried",
        code=(last.line or "") if last else "", place=Place(last.filename, last.lineno) if last else None,
    )  # fmt: skip
