"""Findings where every number is finite: positions that coincide, angles, logits, constants, gradients, updates."""

from __future__ import annotations

import torch

import halfscope
from halfscope.torch.diagnose.recorder import InputChange
from halfscope.torch.diagnose.session import Outcome, Session
from halfscope.torch.diagnose.silent.lost_digits import lost_digits, stalled_totals
from halfscope.torch.diagnose.silent.lost_updates import flushed_gradients, lost_updates
from halfscope.torch.events.change import Override
from halfscope.torch.findings.finding import Finding, digits, located, place_of
from halfscope.torch.operations.table import Trait, named

_ANGLE = 0.05  # radians
_GAP = 0.01  # nat
_HALF = "seen in the step; not tried, since the weights have 16 bits themselves"


def silent_findings(session: Session, outcome: Outcome, exact: Outcome) -> list[Finding]:
    angles = _angles(session, outcome, exact)
    looks = [_logits, stalled_totals, lost_digits, _stored_averages, flushed_gradients, lost_updates]
    if not angles:  # which tell of their positions and frequencies themselves
        looks = [_positions, _buffers, *looks]
    return [*angles, *(finding for look in looks for finding in look(session, outcome, exact))]


def _angles(session: Session, outcome: Outcome, _: Outcome) -> list[Finding]:
    assert outcome.recorder is not None
    worst = max(outcome.recorder.phases, key=lambda phase: phase[1], default=None)
    if worst is None or worst[1] < _ANGLE:
        return []
    made, error, sources = worst
    casts = [name.removesuffix(".input") for name in outcome.recorder.inputs]
    trial = {row: Override(is_wide=True) for row in (made.row, *(source.row for source in sources), *casts)}
    sure = _HALF if session.is_half else _angles_again(session, trial, error)
    inputs = "; ".join(_change(session, change) for change in outcome.recorder.inputs.values() if not _is_small(change))
    where = f"{made.site}: " if made.site is not None else ""
    step = f"; angles up to {digits(made.largest)} have a step of {digits(session.format.step_at(made.largest))} in "
    step += session.format.label
    return [
        Finding(
            "angle",
            f"{where}compute positions, frequencies and their product in FP32, and cast only the sine and cosine: "
            "positions.float() * frequencies.float(), frequencies stored in FP32",
            f"{place_of(made)}: its angle is off by {digits(error)} rad" + (f"; {inputs}" if inputs else step) + ".",
            sure,
            made,
            "angles in FP32",
        )
    ]


def _angles_again(session: Session, trial: dict[str, Override], error: float) -> str:
    again = session.run(trial)
    assert again.recorder is not None
    after = max((found for _, found, _ in again.recorder.phases), default=0.0)
    return f"tried, and the angle is off by {digits(after)} rad" if after < error / 2 else "not sure: tried, no better"


def _is_small(change: InputChange) -> bool:
    return change.largest_change < 0.25 and change.distinct >= change.distinct_before


def _change(session: Session, change: InputChange) -> str:
    text = f"{change.name.removesuffix('.input')}: {change.elements} values, {change.changed} changed by the cast to "
    text += f"{session.format.label}, by up to {digits(change.largest_change)}"
    if change.distinct < change.distinct_before:
        text += f", {change.distinct_before} different ones become {change.distinct}"
    examples = [f"{before:g} is {after:g}" for before, after in zip(change.exact, change.stored)]
    return f"{text} ({', '.join(examples)})"


def _site(change: InputChange) -> str:
    return "" if change.site is None else f"{change.site}: "


def _positions(session: Session, outcome: Outcome, _: Outcome) -> list[Finding]:
    assert outcome.recorder is not None
    return [
        Finding(
            "input",
            f"{_site(change)}keep these whole numbers in FP32 up to where they are embedded",
            f"{_change(session, change)}.",
            "seen, at its cast; no remedy was tried",
            change,
            "input in FP32",
        )
        for change in outcome.recorder.inputs.values()
        if change.is_whole and change.distinct < change.distinct_before and not change.is_buffer
    ]


def _buffers(session: Session, outcome: Outcome, _: Outcome) -> list[Finding]:
    """Constants that a model keeps in buffers or parameters."""
    assert outcome.recorder is not None
    found = []
    for change in outcome.recorder.inputs.values():
        relative = max((abs(b - a) / abs(b) for b, a in zip(change.exact, change.stored) if b), default=0.0)
        if not change.is_buffer or not (change.flushed or relative > 1e-3) or change.elements > 64:
            continue
        examples = [f"{before:g} is {after:g}" for before, after in zip(change.exact, change.stored)]
        zeros = (
            f"{change.flushed} of {change.elements} elements are 0 in {session.format.label}; "
            if change.flushed
            else ""
        )
        found.append(
            Finding(
                "buffer",
                f"keep the buffer {change.name} and the operations on it in FP32, or choose constants that "
                f"{session.format.label} has",
                f"{change.name}: {zeros}{', '.join(examples)}.",
                "seen, at its cast; no remedy was tried",
                change,
                "constants",
            )
        )
    return found


def _logits(session: Session, outcome: Outcome, _: Outcome) -> list[Finding]:
    assert outcome.recorder is not None
    if outcome.recorder.log_softmax_error is None:
        return []
    gap, sources = outcome.recorder.log_softmax_error
    head = next((made for made in sources if made.operation in named(Trait.LOGITS)), None)
    if gap < _GAP or head is None:
        return []
    again = session.run({head.row: Override(is_wide=True)})
    assert again.recorder is not None
    after = (again.recorder.log_softmax_error or (gap, []))[0]
    if after > 0.7 * gap:
        return []
    step = session.format.step_at(head.largest)
    change, code = located(
        None if head.module else head.site,
        f"keep {f'module {head.module}' if head.module else head.row} in FP32: model(...).float() is too late, the "
        "product itself must not be rounded",
    )
    return [
        Finding(
            "logits",
            change,
            f"{place_of(head)}: logits up to {digits(head.largest)} have a step of {digits(step)} in "
            f"{session.format.label}; log-probabilities are off by up to {digits(gap)} nat, probability ratios by a "
            f"factor of {torch.tensor(gap).exp().item():.3f}.",
            f"tried, and they are off by {digits(after)} nat",
            head,
            "head in FP32",
            code,
        )
    ]


def _stored_averages(session: Session, outcome: Outcome, exact: Outcome) -> list[Finding]:
    """Buffers that a step moves by less than half a step of the format, which autocast leaves in FP32."""
    found = []
    buffers = {} if session.policy.fp32_parameters else exact.buffers
    for name, after in buffers.items():
        before = session.before.model.get(name)
        if before is None or not after.is_floating_point():
            continue
        changes = after.float() - before.float()
        # Changes that another rounding of the step undoes are round-off about an average that does not move.
        moved = (changes != 0) & ((after.float() - outcome.buffers[name].float()).abs() < changes.abs() / 2)
        if 2 * int(moved.sum()) < int((changes != 0).sum()):
            continue
        stored = halfscope.round(before.float().contiguous(), session.format.name)
        stays = halfscope.round((stored + changes).contiguous(), session.format.name) == stored
        lost = int((stays & moved).sum())
        if not lost or lost * 2 < int(moved.sum()):
            continue
        change = float(changes[stays & moved].abs().max())
        found.append(
            Finding(
                "average",
                f"keep {name} in FP32",
                f"{name}: the step changes it by up to {digits(change)}, which {session.format.label} loses in "
                f"{lost} of "
                f"{int(moved.sum())} elements: stored in {session.format.label} it never moves.",
                "computed from the FP32 step; the emulation itself keeps buffers that are updated in place in FP32",
                name,
                "average in FP32",
            )
        )
    return found
