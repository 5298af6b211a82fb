"""Faults that no format is to blame for: state that is ill before the step, and FP32's own."""

from __future__ import annotations

from typing import Any

from halfscope.torch.doctor.backward_faults import FirstNotFinite
from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.local_causes import causes_of
from halfscope.torch.doctor.nested_tensors import floats_in
from halfscope.torch.doctor.program import Program, Trial
from halfscope.torch.doctor.report import Advice


def state_before(program: Program) -> Advice | None:
    """Weights, buffers and states of an optimizer that are not finite before the step."""
    for name, tensor in program.state():
        if not tensor.is_floating_point():
            continue
        bad = int((~tensor.detach().isfinite()).sum())
        if bad:
            why = f"{name} holds {bad} of {tensor.numel()} elements that are NaN or infinite before the step"
            return Advice(
                "state before", "restore a checkpoint from before: no format is to blame", why, "seen, no run needed"
            )
    return None


def beyond_range(program: Program) -> Advice | None:
    """Weights and states that the format does not hold."""
    format = program.format
    for name, tensor in program.state():
        largest = float(tensor.detach().abs().max()) if tensor.is_floating_point() and tensor.numel() else 0.0
        if largest > format.largest and program.is_plain:
            why = f"{name} holds up to {largest:.5g}; {format.label}'s largest number is {format.largest:g}"
            change = f"scale {name} down, or keep it in FP32"
            return Advice("state before", change, why, "seen before the step; no change was tried")
    return None


def in_fp32(about: Examination) -> Advice:
    """The first operation that is not finite in FP32 either."""
    first = FirstNotFinite()
    run = about.program.run(Trial(is_exact=True, keeps_all=True), first)
    call = first.call(run.log) if first.is_backward else first_bad(list(run.log.calls))
    causes = [] if call is None else causes_of([call], about.program.format)
    where = "" if call is None else str(call.place)
    why = f"in FP32 too: {first.operation or 'the step'} is not finite"
    if call is not None:
        why = f"in FP32 too {'the gradient of ' if first.is_backward else ''}{call.place.called} is not finite"
    why += f"; {causes[0].words}" if causes and causes[0].kind == "domain" else ""
    change = "look at this line and at the batch first: no format is to blame"
    return Advice(
        "FP32", change, why, "computed in FP32, untried", where,
        "" if call is None else call.place.line_text,
    )  # fmt: skip


def first_bad(calls: list[Call]) -> Call | None:
    for call in calls:
        if not _is_finite(call.result) and _is_finite((call.args, call.kwargs)):
            return call
    return None


def _is_finite(value: Any) -> bool:
    return all(bool(each.isfinite().all()) for each in floats_in(value))
