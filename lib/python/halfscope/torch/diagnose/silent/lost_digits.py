"""Findings on digits that an operation loses, though every number is finite."""

from __future__ import annotations

import math

from halfscope.torch.diagnose.losses import Loss, Total
from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.events.change import Override
from halfscope.torch.findings.finding import Finding, called, digits, located, place_of
from halfscope.torch.findings.kinds import PRODUCTS
from halfscope.torch.findings.remedies import PARTIAL_SUMS

_HARM = 0.05  # relative error of the model's result, or of the loss


def lost_digits(session: Session, outcome: Outcome, exact: Outcome) -> list[Finding]:
    """On the first operation whose result is far from FP32's although its operands are not."""
    assert outcome.recorder is not None
    if not outcome.recorder.losses.found or not _harms(outcome, exact):
        return []
    return [_finding(session, outcome.recorder.losses.found[0], exact)]


def stalled_totals(session: Session, outcome: Outcome, exact: Outcome) -> list[Finding]:
    """On totals that one line adds to term by term."""
    assert outcome.recorder is not None
    totals = sorted(outcome.recorder.losses.stalled, key=lambda total: -total.error)
    return [_total_finding(session, total, exact) for total in totals[:1]]


def _harms(outcome: Outcome, exact: Outcome) -> bool:
    assert outcome.recorder is not None
    if outcome.recorder.output_error > _HARM or outcome.recorder.faults:
        return True
    losses = outcome.loss, exact.loss
    return None not in losses and not math.isclose(*losses, rel_tol=_HARM, abs_tol=1e-6)  # type: ignore[arg-type]


def _finding(session: Session, loss: Loss, exact: Outcome) -> Finding:
    made, maker, format = loss.made, loss.maker, session.format
    step = format.step_at(loss.largest_operand)
    if made.order.startswith("split_k"):
        change = PARTIAL_SUMS
        cause = (
            f"its operands are off by {_percent(loss.before)}, its result by {_percent(loss.after)}: {made.order} "
            "stores sums of parts of the terms, and these cancel"
        )
    elif loss.zeros and loss.largest <= format.smallest:
        cause = (
            f"{loss.zeros} of {loss.elements} results are 0 in {format.label}, and up to {digits(loss.largest)} in "
            f"FP32: its smallest number is {format.smallest:.2g}"
        )
        change = f"compute {called(made.operation)} in FP32, on x.float(), or scale its operands up"
    else:
        cause = (
            f"its operands are off by {_percent(loss.before)}, its result by {_percent(loss.after)}: operands up to "
            f"{digits(loss.largest_operand)} have a step of {digits(step)} in {format.label}, and differences smaller "
            "than that are lost"
        )
        before = "" if maker is None or maker.operation == made.operation else f"{called(maker.operation)} and "
        change = f"compute {before}{called(made.operation)} in FP32, on x.float(), so that they subtract exact numbers"
    behind = "" if maker is None else f". The operand is made by {place_of(maker)}"
    change, code = located(made.site, change)
    return Finding(
        "lost digits", change, f"{place_of(made)}: {cause}{behind}.", _tried(session, loss, exact), made,
        "operands in FP32", code,
    )  # fmt: skip


def _tried(session: Session, loss: Loss, exact: Outcome) -> str:
    if session.is_half:
        return "seen in the step; not tried, since the weights have 16 bits themselves"
    before = [made for made in (loss.made, loss.maker) if made is not None]
    before += [made for made in loss.sources if made.operation not in PRODUCTS]
    again = session.run({made.row: Override(is_wide=True) for made in before})
    assert again.recorder is not None
    if any(found.made.row == loss.made.row for found in again.recorder.losses.found):
        return "not sure: tried in FP32, and the result was still off"
    if again.loss is None or exact.loss is None:
        return "tried, and this loss is gone"
    return f"tried, and this is gone: loss {again.loss:.6g}, in FP32 {exact.loss:.6g}"


def _total_finding(session: Session, total: Total, exact: Outcome) -> Finding:
    made, format = total.made, session.format
    if made.site is None:  # the engine's own
        name = "the gradient of a parameter"
        change = f"accumulate gradients in FP32: FP32 weights, or fewer micro-batches than {len(total.rows)}"
    else:
        name = place_of(made)
        change = "keep the total in FP32, total.float(), or use one sum, which is FP32 inside: x.sum(), x.cumsum()"
    change, code = located(made.site, change)
    return Finding(
        "total", change,
        f"{name}: a total of {len(total.rows)} terms, each rounded to {format.label}, is {digits(total.largest)}, in "
        f"FP32 {digits(total.exact)}, {_percent(total.error)} off; at {digits(total.largest)} {format.label} has a "
        f"step of {digits(format.step_at(total.largest))}, and a term of {digits(total.term)} is rounded to that.",
        _tried_total(session, total, exact), made, "total in FP32", code,
    )  # fmt: skip


def _tried_total(session: Session, total: Total, exact: Outcome) -> str:
    if session.is_half or total.made.site is None:
        return "counted over the step; not tried"
    again = session.run({row: Override(is_wide=True) for row in total.rows})
    assert again.recorder is not None
    if any(str(found.made.site) == str(total.made.site) for found in again.recorder.losses.stalled):
        return "not sure: tried in FP32, and the total was still off"
    if again.loss is None or exact.loss is None:
        return "tried, and the total is right"
    return f"tried, and the total is right: loss {again.loss:.6g}, in FP32 {exact.loss:.6g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
