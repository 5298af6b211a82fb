"""Words of a search: each remedy with its cause, what nothing heals, and what was looked at."""

from __future__ import annotations

from halfscope.torch.doctor.backward_faults import FirstNotFinite
from halfscope.torch.doctor.diagnosing import Course, Remedy
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.ill_before import first_bad
from halfscope.torch.doctor.local_causes import causes_of
from halfscope.torch.doctor.program import Trial
from halfscope.torch.doctor.regions import ancestors
from halfscope.torch.doctor.report import Advice, Examined, alarm_words
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.words import counted, number

_DEEP = 4  # ancestors of a call that are looked at for a cause


def told(about: Examination, course: Course) -> Examined:
    outcome, exact = about.narrow.outcome, about.exact.outcome
    harm = alarm_words(about.alarms, outcome.loss, exact.loss)
    advice = [_advice(about, remedy, harm if index == 0 else "") for index, remedy in enumerate(course.remedies)]
    notes = []
    if course.is_spread:
        notes.append(
            f"Round-off is amplified over many of the {counted(len(about.places), 'call')}: {harm}. No line that was "
            "tried heals it: there is no line to change; train in FP32, or with larger batches."
        )
    elif course.is_out_of_time and not advice:
        notes.append(f"The search ended after {about.seconds:g} s: {harm}. {_region_words(course)}")
    elif course.is_unhealed or not advice:
        advice.append(_unhealed(about, course, harm))
    return Examined(tuple(advice), extent(about), tuple(about.alarms), tuple(notes), about.program.runs)


def _region_words(course: Course) -> str:
    if course.region is None:
        return "Nothing that was tried until then heals it."
    first, last = course.region.places[0], course.region.places[-1]
    return f"FP32 from {first} to {last} heals it."


def _advice(about: Examination, remedy: Remedy, harm: str) -> Advice:
    candidate = remedy.candidate
    place = candidate.place
    exact = about.exact.outcome.loss
    sure = "tried: loss, results, gradients and decisions are FP32's but for round-off"
    if remedy.loss is not None and exact is not None:
        sure += f"; loss {remedy.loss:.6g}, in FP32 {exact:.6g}"
    if candidate.family not in ("loss scale", "state"):
        sure += "; and again on slightly smaller inputs"
    why = "; ".join(filter(None, [_cause_words(about, remedy.group), harm]))
    return Advice(
        candidate.family, candidate.words, why, sure, "" if place is None else str(place),
        "" if place is None else place.line_text, candidate.edits,
    )  # fmt: skip


def _cause_words(about: Examination, places: tuple[CallPlace, ...]) -> str:
    """Effect of the format on the calls of a group, or to those that made their operands."""
    log = about.narrow.log
    calls = [call for place in places for call in log.calls if call.place == place][:20]
    causes = causes_of(calls, about.program.format)
    if not causes:
        near = [made for call in calls[:4] for made in ancestors(call, log, _DEEP)]
        causes = causes_of(near, about.program.format)
    words = list(dict.fromkeys(cause.words for cause in causes))[:2]
    backward = _backward_words(about, set(places))
    return "; ".join([*words, *([backward] if backward and len(words) < 2 else [])])


def _backward_words(about: Examination, places: set[CallPlace]) -> str:
    if not any(alarm.reason == "not finite" and alarm.distance.group == "gradient" for alarm in about.alarms):
        return ""
    if any(alarm.distance.group == "number" and alarm.reason == "not finite" for alarm in about.alarms):
        return ""
    first = FirstNotFinite()
    run = about.program.run(Trial(keeps_all=True), first)
    call = first.call(run.log)
    return "" if call is None else f"the gradient of {call.place.called} is not finite"


def _unhealed(about: Examination, course: Course, harm: str) -> Advice:
    first = FirstNotFinite()
    run = about.program.run(Trial(keeps_all=True), first)
    call = (first.call(run.log) if first.is_backward else None) or first_bad(list(run.log.calls))
    where = "" if call is None else str(call.place)
    tried = "FP32 in all calls, in inputs, weights and state, other loss scales" + (
        f", {counted(course.tried, 'change')}" if course.tried else ""
    )
    return Advice(
        "", "nothing that was tried heals this", harm, f"tried: {tried}", where,
        "" if call is None else call.place.line_text,
    )  # fmt: skip


def healthy(about: Examination) -> str:
    outcome, exact = about.narrow.outcome, about.exact.outcome
    parts = ["Healthy: every result"]
    parts += [number(outcome.gradients, "gradient")] if outcome.gradients else []
    parts += [number(exact.decisions, "decision")] if exact.decisions else []
    text = " and ".join(parts) + f" {'is' if len(parts) == 1 else 'are'} FP32's but for round-off."
    if not outcome.gradients:
        text += " No loss that depends on a weight came back: the backward pass was not looked at."
    return text


def extent(about: Examination) -> str:
    """Extent of the examination: calls, format, losses, runs."""
    program = about.program
    label = program.format.label
    if program.under_autocast:
        how = f"as within torch.autocast in {label}"
    elif program.is_plain:
        how = f"all of it in {label}, the loss too, as after model.half()"
    else:
        how = f"as its script has it, with its own autocast and casts, in {label}"
    calls = f"{counted(about.floor.calls, 'call')} of one step, " if hasattr(about, "floor") else "one step, "
    text = f"Looked at: {calls}{how}, beside FP32"
    if hasattr(about, "narrow"):
        loss, exact = about.narrow.outcome.loss, about.exact.outcome.loss
        if loss is not None and exact is not None:
            text += f"; loss {loss:.6g}, in FP32 {exact:.6g}"
    return f"{text}; loss scale {program.scale:g}; {counted(program.runs, 'run')}."
