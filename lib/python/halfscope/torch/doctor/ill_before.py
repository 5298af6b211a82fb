"""Faults that no format is to blame for: state that is ill before the step, and FP32's own."""

from __future__ import annotations

from halfscope.torch.doctor.calls import Kept
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.first_not_finite import FirstNotFinite
from halfscope.torch.doctor.local_causes import causes_of
from halfscope.torch.doctor.program import Program, Trial
from halfscope.torch.doctor.report import Advice, placed
from halfscope.torch.findings.words import ill_words
from halfscope.torch.words import listed


def state_before(program: Program) -> Advice | None:
    """Weights, buffers and states of an optimizer that are not finite before the step."""
    for name, tensor in program.state():
        if not tensor.is_floating_point():
            continue
        why = ill_words(name, tensor.detach())
        if why:
            change = "restore a checkpoint from before: no format is to blame"
            return Advice("state before", change, why, "seen, no run needed")
    return None


def beyond_range(program: Program) -> str:
    """A sentence on weights and states that the format does not hold; empty where it holds all."""
    format = program.format
    large = [
        f"{name} holds up to {largest:.5g}"
        for name, tensor in program.state()
        if tensor.is_floating_point() and tensor.numel()
        and (largest := float(tensor.detach().abs().max())) > format.largest
    ]  # fmt: skip
    if not large or not program.is_plain:
        return ""
    return f"Before the step: {listed(large)}; {format.label}'s largest number is {format.largest:g}."


def in_fp32(about: Examination) -> Advice:
    """The first operations that are not finite in FP32 either."""
    first = FirstNotFinite()
    log = about.made(Trial(is_exact=True, keeps=Kept()), first).log
    origins = first.origins
    call = origins[0].call(log) if origins else None
    causes = [] if call is None or origins[0].is_backward else causes_of([call], about.program.format)
    why = [origin.words(log) for origin in origins] or ["the step is not finite"]
    why += [causes[0].words] if causes and causes[0].kind == "domain" else []
    change = "look at this line and at the batch first: no format is to blame"
    place = None if call is None else call.place
    return Advice("FP32", change, f"in FP32 too {'; '.join(why)}", "computed in FP32, untried", **placed(place))
