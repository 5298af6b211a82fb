"""Angles that are off by a visible part of a turn, though positions and frequencies are finite."""

from __future__ import annotations

from typing import Any

from halfscope.torch.diagnose.recorder import InputChange
from halfscope.torch.diagnose.silent.input_changes import words_of
from halfscope.torch.diagnose.silent.silent import UNTRIED, Silent, Steps, recorder_of
from halfscope.torch.findings.finding import Finding, digits, place_of, placed_at

_ANGLE = 0.05  # radians


def _look(steps: Steps) -> list[Any]:
    worst = max(steps.recorder.phases, key=lambda phase: phase[1], default=None)
    return [] if worst is None or worst[1] < _ANGLE else [worst]


def _trial(steps: Steps, phase: Any) -> str:
    if steps.session.is_half:
        return UNTRIED
    made, error, sources = phase
    casts = [name.removesuffix(".input") for name in steps.recorder.inputs]
    rows = (made.row, *(source.row for source in sources), *casts)
    again = steps.session.run(rows)
    after = max((found for _, found, _ in recorder_of(again).phases), default=0.0)
    return f"tried, and the angle is off by {digits(after)} rad" if after < error / 2 else "not sure: tried, no better"


def _words(steps: Steps, phase: Any, sure: str) -> Finding:
    made, error, _ = phase
    format = steps.session.format
    inputs = "; ".join(words_of(change, format) for change in steps.recorder.inputs.values() if not _is_small(change))
    step = f"; angles up to {digits(made.largest)} have a step of {digits(format.step_at(made.largest))} in "
    step += format.label
    return Finding(
        "angle",
        "compute positions, frequencies and their product in FP32, and cast only the sine and cosine: "
        "positions.float() * frequencies.float(), frequencies stored in FP32",
        f"{place_of(made)}: its angle is off by {digits(error)} rad" + (f"; {inputs}" if inputs else step) + ".",
        sure,
        made,
        **placed_at(made.site),
    )


def _is_small(change: InputChange) -> bool:
    return change.largest_change < 0.25 and change.distinct >= change.distinct_before


ANGLE_ERROR = Silent("angle", _look, _trial, _words)
