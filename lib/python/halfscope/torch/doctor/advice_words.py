"""Words of a search: each remedy with its cause, what nothing heals, and what was looked at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from halfscope.reporting import Finding
from halfscope.torch.doctor.calls import Kept
from halfscope.torch.doctor.diagnosing import Course, Remedy
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.failures import HEALED, Alarm
from halfscope.torch.doctor.ill_before import beyond_range
from halfscope.torch.doctor.limits import limit_words
from halfscope.torch.doctor.local_causes import causes_of
from halfscope.torch.doctor.outcomes import Distance, changed_decisions, distances
from halfscope.torch.doctor.program import TYPES, Program, Trial
from halfscope.torch.doctor.report import Advice, Diagnosis, alarm_words, placed, shown_name
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.doctor.state_causes import state_words
from halfscope.torch.doctor.ties import tie_words
from halfscope.torch.words import counted, listed, number

_DEEP = 4  # ancestors of a call that are looked at for a cause
_MOST = {"number": HEALED.numbers, "gradients": HEALED.gradients}  # error that a remedy may leave


def told(about: Examination, course: Course) -> Diagnosis:
    about.keep(Kept())
    outcome, exact = about.narrow.outcome, about.exact.outcome
    ties = tie_words(about, [alarm.distance for alarm in about.alarms])
    healed = {place for remedy in course.remedies for place in remedy.group}
    of_outcome = [alarm for alarm in about.alarms if alarm.distance.place is None]
    others = [words for place, words in ties.items() if place not in healed]
    changes = [alarm for alarm in of_outcome if alarm.distance.group == "change"]
    if any(remedy.is_of_changes for remedy in course.remedies):  # which tells them itself
        of_outcome = [alarm for alarm in of_outcome if alarm not in changes]
    harm = "; ".join(filter(None, [*others, alarm_words(of_outcome, outcome.loss, exact.loss)]))
    findings = [
        _of_changes(about, remedy, changes)
        if remedy.is_of_changes
        else _advice(about, remedy, ties, harm if index == 0 else "", is_alone=len(course.remedies) == 1)
        for index, remedy in enumerate(course.remedies)
    ]
    spread = ""
    if course.is_spread:
        spread = _spread_words(about, harm)
    elif course.is_unhealed or not findings:
        findings.append(_cause_alone(about, course, harm))
    notes = tuple(
        filter(None, [_only_words(about), beyond_range(about.program), _autocast_words(about), refused(about.program)])
    )
    return Diagnosis(
        findings=tuple(findings), about=extent(about), alarms=tuple(about.alarms), notes=notes, spread=spread,
        runs=about.program.runs, types=of_two_types(about),
    )  # fmt: skip


def _spread_words(about: Examination, harm: str) -> str:
    if about.program.only is not None:
        return f"Round-off is amplified: {harm}. No line of {about.program.only} that was tried heals it."
    return (
        f"Round-off is amplified over many of the {counted(len(about.places), 'call')}: {harm}. No line that was "
        "tried heals it: there is no line to change; train in FP32, or with larger batches."
    )


def _only_words(about: Examination) -> str:
    """A sentence on a search that was narrowed to some modules; empty of another one."""
    if about.program.only is None:
        return ""
    return (
        f"Looked for the cause in {counted(len(about.places), 'call')} of {about.program.only} alone: other modules, "
        "what stands outside of modules, loss scales and state in FP32 were not tried."
    )


def undecided(about: Examination, missing: str) -> Diagnosis:
    """Errors of a step that there was no time to judge. missing: knowledge that came too late, as a clause."""
    harm = alarm_words(about.alarms, about.narrow.outcome.loss, about.exact.outcome.loss)
    spread = f"Not decided: {harm}, or so it seems; {about.progress.ending}, before {missing}; seconds= gives it more."
    return Diagnosis(about=extent(about), alarms=tuple(about.alarms), spread=spread, runs=about.program.runs)


def _advice(about: Examination, remedy: Remedy, ties: dict[CallPlace, str], harm: str, is_alone: bool) -> Advice:
    """ties: clauses on decisions, by place. harm: what the fault does to the outcome."""
    candidate = remedy.candidate
    exact = about.exact.outcome.loss
    sure = "tried: loss, results, gradients and decisions are FP32's but for round-off"
    if remedy.loss is not None and exact is not None:
        sure += f"; loss {remedy.loss:.6g}, in FP32 {exact:.6g}"
    if candidate.family not in ("loss scale", "state"):
        sure += "; and again on slightly smaller inputs"
    causes = state_words(about) if candidate.family == "state" else _cause_words(about, remedy.group)
    why = "; ".join(filter(None, [causes, *(words for place, words in ties.items() if place in remedy.group), harm]))
    place = candidate.place or (_own_overflow(about) if candidate.family == "state" and is_alone else None)
    return Advice(candidate.family, candidate.words, why, sure, edits=candidate.edits, **placed(place))


def _of_changes(about: Examination, remedy: Remedy, changes: list[Alarm]) -> Advice:
    """A remedy of lost changes alone."""
    why = "; ".join(filter(None, [state_words(about), alarm_words(changes, None, None)]))
    sure = "tried: every change of state is FP32's but for round-off; the amplified round-off stays"
    return Advice(remedy.candidate.family, remedy.candidate.words, why, sure)


def _own_overflow(about: Examination) -> CallPlace | None:
    """Place at which the script itself makes the first number that is not finite, as in a clip of gradients."""
    log, origins = about.narrow.log, about.first.origins
    call = origins[0].call(log) if origins and not origins[0].is_backward else None
    return None if call is None or call.place in log.of_updates else call.place


def _cause_words(about: Examination, places: tuple[CallPlace, ...]) -> str:
    """Effect of the format on the calls of a group, or to those that made their operands."""
    log = about.narrow.log
    calls = [call for place in places for call in log.turns(place)][:20]
    causes = causes_of(calls, about.program.format)
    if not causes:
        near = [made for call in calls[:4] for made in log.ancestors(call, _DEEP)]
        causes = causes_of(near, about.program.format)
    words = list(dict.fromkeys(cause.words for cause in causes))[:2]
    first = causes[0] if causes else None
    if first is not None and first.kind == "overflow":
        words[0] = "; ".join(filter(None, [words[0], limit_words(first.call, about.program.format)]))
    backward = _backward_words(about)
    return "; ".join([*words, *([backward] if backward and len(words) < 2 else [])])


def _backward_words(about: Examination) -> str:
    if not any(alarm.reason == "not finite" and alarm.distance.group == "gradient" for alarm in about.alarms):
        return ""
    if any(alarm.distance.group == "number" and alarm.reason == "not finite" for alarm in about.alarms):
        return ""
    origin = about.first.backward
    return "" if origin is None else origin.words(about.narrow.log)


def _cause_alone(about: Examination, course: Course, harm: str) -> Advice:
    """The first call that is not finite, without a remedy."""
    log, origins = about.narrow.log, about.first.origins
    call = origins[0].call(log) if origins else None
    causes = [] if call is None or origins[0].is_backward else causes_of([call], about.program.format)
    words = [cause.words for cause in causes[:1]] or [origin.words(log) for origin in origins[:1]]
    harm = "; ".join([*(origin.words(log) for origin in origins[1:]), harm])
    if about.quick:
        sure = f"seen in {counted(about.program.runs, 'run')}; no remedy was searched for: leave out quick=True"
    elif course.is_out_of_time:
        sure = f"{about.progress.ending}: {_region_words(course)}; seconds= gives it more"
    else:
        sure = _unhealed_words(about, course)
    place = None if call is None else call.place
    return Advice("", words[0] if words else "the format spoils this step", harm, sure, **placed(place))


def _unhealed_words(about: Examination, course: Course) -> str:
    """A region that heals the step as it is was not accepted on slightly smaller inputs."""
    changes = f", {counted(course.tried, 'change')}" if course.tried else ""
    if course.region is None:
        kinds = "FP32 in all calls, in inputs, weights and state, other loss scales"
        if about.program.only is not None:
            kinds = f"FP32 in all calls of {about.program.only}, in inputs and weights that these take"
        return f"nothing that was tried heals this: {kinds}{changes}"
    return f"{_region_words(course)} on these inputs; nothing that was tried heals slightly smaller ones too{changes}"


def _region_words(course: Course) -> str:
    if course.region is None:
        return "nothing that was tried until then heals it"
    first, last = course.region.places[0], course.region.places[-1]
    return f"FP32 from {first} to {last} heals it"


def _autocast_words(about: Examination) -> str:
    """Whether the step that fails in the format is healthy within torch.autocast."""
    program = about.program
    if about.quick or not program.is_plain or program.format.name not in TYPES:
        return ""
    if not about.progress.has_time(purpose="the step within torch.autocast"):
        return ""
    other = replace(program, under_autocast=True, is_plain=False)
    try:
        outcome = other.run(Trial()).outcome
    except Exception:  # autocast refuses some functions
        return ""
    program.runs += 1
    if not about.floor.is_healed(outcome, about.exact.outcome, HEALED):
        return ""
    name = "autocast" if program.format.name == "fp16" else f"autocast_{program.format.name}"
    return f'Within torch.autocast this step is FP32\'s but for round-off: diagnose(model, loss, "{name}").'


@dataclass(frozen=True)
class FarResults:
    """Results, and all gradients together, of a step without an alarm that are farther off than a remedy may leave."""

    judged: list[Distance]
    lost: list[Distance]  # nothing but round-off in FP32 too, so that no error tells anything
    words: str  # on the lost ones, as the rest of a sentence; empty where each has a verdict

    @property
    def has_gradients(self) -> bool:
        """Whether all gradients together are among the lost ones."""
        return any(each.group == "gradients" for each in self.lost)


def far_results(about: Examination) -> FarResults:
    every = distances(about.narrow.outcome, about.exact.outcome)
    far = [each for each in every if each.group in _MOST and each.error > _MOST[each.group]]
    lost = [each for each in far if about.floor.is_noise(each)]
    return FarResults([each for each in far if each not in lost], lost, _lost_words(about, lost))


def _lost_words(about: Examination, lost: list[Distance]) -> str:
    if not lost:
        return ""
    names = listed(shown_name(each.name) for each in lost)
    noise = max(about.floor.errors_of_fp32[each.group, each.name] for each in lost)
    size = f"is {100 * noise:.3g} % of it" if noise < inf else "is all of it"
    return (
        f"{names}: in FP32 too round-off {size}, as where large numbers cancel, or where it would be 0 without "
        "round-off; compare it with the step in float64"
    )


def healthy(about: Examination, far: FarResults) -> str:
    """The verdict on a step without an alarm."""
    outcome, exact = about.narrow.outcome, about.exact.outcome
    parts = ["every other result" if far.lost else "every result"]
    parts += [number(outcome.gradients, "gradient")] if outcome.gradients and not far.has_gradients else []
    decisions = len(exact.decisions) + (0 if changed_decisions(outcome, exact) else len(exact.choices))
    parts += [counted(decisions, "decision")] if decisions else []
    text = " and ".join(parts) + f" {'is' if len(parts) == 1 else 'are'} FP32's but for round-off"
    if far.lost:
        return f"No verdict on {far.words}. {text[0].upper()}{text[1:]}."
    return f"Healthy: {text}{_large_round_off(about, far.judged)}."


def _large_round_off(about: Examination, judged: list[Distance]) -> str:
    """A clause on the farthest number of a healthy step, where round-off is more than a remedy may leave."""
    far = max(judged, key=lambda each: each.error / _MOST[each.group], default=None)
    if far is None:
        return ""
    noise = about.floor.of(far)
    return (
        f", which is large here: {100 * far.error:.3g} % in {shown_name(far.name)}, and up to {100 * noise:.3g} % in "
        "FP32 with random roundings of that size"
    )


def of_two_types(about: Examination) -> Finding | None:
    """Calls that PyTorch refuses in 16 bits, since they take FP32 too; None where there are none."""
    program = about.program
    places = sorted(about.narrow.log.mixed, key=lambda place: (place.file, place.span.line))
    if not places or not program.is_plain or program.format.name not in TYPES:
        return None
    calls = listed(f"{place.called} ({place})" for place in places)
    why = (
        f"PyTorch refuses operands of FP32 and of 16 bits in one call, so that the script ends there in "
        f"{program.format.label}; here they were computed in FP32"
    )
    sure = "seen in the run: a cast in the script, or a tensor that it makes, is FP32; no change was tried"
    return Finding("types", f"give {calls} operands of one type", why, sure, **placed(places[0]))


def refused(program: Program) -> str:
    """A sentence on a script that does not run with tensors of the format's type; empty of another one."""
    if not program.refusal:
        return ""
    return (
        f"With tensors of {program.format.label} the script itself ends: {program.refusal}. Here they hold "
        f"{program.format.label}'s numbers and say torch.float32."
    )


def other_decisions(about: Examination) -> str:
    """A sentence on decisions within a healthy step that the format makes otherwise; empty where it makes none."""
    words = tie_words(about, changed_decisions(about.narrow.outcome, about.exact.outcome))
    if not words:
        return ""
    return f"Decided otherwise than in FP32, within the step: {'; '.join(words.values())}."


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
    text += f"; loss scale {program.scale:g}; {counted(program.runs, 'run')}."
    if hasattr(about, "exact") and not about.exact.outcome.gradients:
        text += " No loss that depends on a weight came back: the backward pass was not looked at."
    return text
