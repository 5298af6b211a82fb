"""Constants that a model keeps in buffers or parameters, and that the format does not have."""

from __future__ import annotations

from halfscope.torch.diagnose.recorder import InputChange
from halfscope.torch.diagnose.silent.input_changes import examples_of
from halfscope.torch.diagnose.silent.silent import Silent, Steps, seen_alone
from halfscope.torch.findings.finding import Finding

_CHANGED = 1e-3  # relative
_MOST = 64  # elements; longer buffers are data


def _look(steps: Steps) -> list[InputChange]:
    return [change for change in steps.recorder.inputs.values() if change.is_buffer and _is_changed(change)]


def _is_changed(change: InputChange) -> bool:
    relative = max((abs(b - a) / abs(b) for b, a in zip(change.exact, change.stored) if b), default=0.0)
    return bool(change.flushed or relative > _CHANGED) and change.elements <= _MOST


def _words(steps: Steps, change: InputChange, sure: str) -> Finding:
    label = steps.session.format.label
    zeros = f"{change.flushed} of {change.elements} elements are 0 in {label}; " if change.flushed else ""
    return Finding(
        "buffer",
        f"keep the buffer {change.name} and the operations on it in FP32, or choose constants that {label} has",
        f"{change.name}: {zeros}{', '.join(examples_of(change))}.",
        sure,
        change,
    )


CHANGED_CONSTANTS = Silent(
    "buffer", _look, seen_alone("seen, at its cast; no remedy was tried"), _words, unless="angle"
)  # fmt: skip
