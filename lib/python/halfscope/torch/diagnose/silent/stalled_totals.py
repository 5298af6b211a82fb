"""Totals that one line adds to term by term, and that stop growing."""

from __future__ import annotations

from halfscope.torch.diagnose.observers.losses import Total
from halfscope.torch.diagnose.silent.silent import Silent, Steps, recorder_of
from halfscope.torch.findings.finding import Finding, digits, in_percent, place_of, placed_at


def _look(steps: Steps) -> list[Total]:
    return sorted(steps.recorder.losses.stalled, key=lambda total: -total.error)[:1]


def _trial(steps: Steps, total: Total) -> str:
    if steps.session.is_half or total.made.site is None:
        return "counted over the step; not tried"
    again = steps.session.run(total.rows)
    if any(str(found.made.site) == str(total.made.site) for found in recorder_of(again).losses.stalled):
        return "not sure: tried in FP32, and the total was still off"
    if again.loss is None or steps.exact.loss is None:
        return "tried, and the total is right"
    return f"tried, and the total is right: loss {again.loss:.6g}, in FP32 {steps.exact.loss:.6g}"


def _words(steps: Steps, total: Total, sure: str) -> Finding:
    made, format = total.made, steps.session.format
    if made.site is None:  # the engine's own
        name = "the gradient of a parameter"
        change = f"accumulate gradients in FP32: FP32 weights, or fewer micro-batches than {len(total.rows)}"
    else:
        name = place_of(made)
        change = "keep the total in FP32, total.float(), or use one sum, which is FP32 inside: x.sum(), x.cumsum()"
    return Finding(
        "total", change,
        f"{name}: a total of {len(total.rows)} terms, each rounded to {format.label}, is {digits(total.largest)}, in "
        f"FP32 {digits(total.exact)}, {in_percent(total.error)} off; at {digits(total.largest)} {format.label} has a "
        f"step of {digits(format.step_at(total.largest))}, and a term of {digits(total.term)} is rounded to that.",
        sure, made, **placed_at(made.site),
    )  # fmt: skip


STALLED_TOTALS = Silent("total", _look, _trial, _words)
