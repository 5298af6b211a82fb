"""Whole numbers of an input, such as positions, of which several become one by the cast."""

from __future__ import annotations

from halfscope.torch.diagnose.recorder import InputChange
from halfscope.torch.diagnose.silent.input_changes import words_of
from halfscope.torch.diagnose.silent.silent import Silent, Steps, seen_alone
from halfscope.torch.findings.finding import Finding, placed_at


def _look(steps: Steps) -> list[InputChange]:
    return [
        change
        for change in steps.recorder.inputs.values()
        if change.is_whole and change.distinct < change.distinct_before and not change.is_buffer
    ]


def _words(steps: Steps, change: InputChange, sure: str) -> Finding:
    return Finding(
        "input",
        "keep these whole numbers in FP32 up to where they are embedded",
        f"{words_of(change, steps.session.format)}.",
        sure,
        change,
        **placed_at(change.site),
    )


EQUAL_POSITIONS = Silent(
    "input", _look, seen_alone("seen, at its cast; no remedy was tried"), _words, unless="angle"
)  # fmt: skip
