"""Digits that an operation loses, though every number is finite: differences that cancel, products that vanish."""

from __future__ import annotations

import math

from halfscope.torch.diagnose.observers.losses import Loss
from halfscope.torch.diagnose.silent.silent import UNTRIED, Silent, Steps, recorder_of
from halfscope.torch.findings.finding import Finding, called, digits, in_percent, place_of, placed_at
from halfscope.torch.findings.kinds import PRODUCTS
from halfscope.torch.findings.words import PARTIAL_SUMS

_HARM = 0.05  # relative error of the model's result, or of the loss


def _look(steps: Steps) -> list[Loss]:
    """The first operation whose result is far from FP32's although its operands are not."""
    found = steps.recorder.losses.found
    return found[:1] if found and _harms(steps) else []


def _harms(steps: Steps) -> bool:
    if steps.recorder.output_error > _HARM or steps.recorder.faults:
        return True
    losses = steps.outcome.loss, steps.exact.loss
    return None not in losses and not math.isclose(*losses, rel_tol=_HARM, abs_tol=1e-6)  # type: ignore[arg-type]


def _trial(steps: Steps, loss: Loss) -> str:
    if steps.session.is_half:
        return UNTRIED
    before = [made for made in (loss.made, loss.maker) if made is not None]
    before += [made for made in loss.sources if made.operation not in PRODUCTS]
    again = steps.session.run(made.row for made in before)
    if any(found.made.row == loss.made.row for found in recorder_of(again).losses.found):
        return "not sure: tried in FP32, and the result was still off"
    if again.loss is None or steps.exact.loss is None:
        return "tried, and this loss is gone"
    return f"tried, and this is gone: loss {again.loss:.6g}, in FP32 {steps.exact.loss:.6g}"


def _words(steps: Steps, loss: Loss, sure: str) -> Finding:
    made, maker, format = loss.made, loss.maker, steps.session.format
    step = format.step_at(loss.largest_operand)
    off = f"its operands are off by {in_percent(loss.before)}, its result by {in_percent(loss.after)}"
    if made.order.startswith("split_k"):
        change = f"compute {called(made.operation)} with FP32 sums"
        cause = f"{off}: {made.order} stores sums of parts of the terms, and these cancel; {PARTIAL_SUMS}"
    elif loss.zeros and loss.largest <= format.smallest:
        cause = (
            f"{loss.zeros} of {loss.elements} results are 0 in {format.label}, and up to {digits(loss.largest)} in "
            f"FP32: its smallest number is {format.smallest:.2g}"
        )
        change = f"compute {called(made.operation)} in FP32, on x.float(), or scale its operands up"
    else:
        cause = (
            f"{off}: operands up to {digits(loss.largest_operand)} have a step of {digits(step)} in {format.label}, "
            "and differences smaller than that are lost"
        )
        before = "" if maker is None or maker.operation == made.operation else f"{called(maker.operation)} and "
        change = f"compute {before}{called(made.operation)} in FP32, on x.float(), so that they subtract exact numbers"
    behind = "" if maker is None else f". The operand is made by {place_of(maker)}"
    why = f"{place_of(made)}: {cause}{behind}."
    return Finding("lost digits", change, why, sure, made, **placed_at(made.site))


LOST_DIGITS = Silent("lost digits", _look, _trial, _words)
