"""Logits whose rounding moves log-probabilities, and the product that makes them."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.diagnose.silent.silent import Silent, Steps, recorder_of
from halfscope.torch.findings.finding import Finding, digits, place_of, placed_at
from halfscope.torch.operations.table import Trait, named

_GAP = 0.01  # nat


def _look(steps: Steps) -> list[Any]:
    """The error of log-probabilities in nat, and the product before them."""
    if steps.recorder.log_softmax_error is None:
        return []
    gap, sources = steps.recorder.log_softmax_error
    head = next((made for made in sources if made.operation in named(Trait.LOGITS)), None)
    return [] if gap < _GAP or head is None else [(gap, head)]


def _trial(steps: Steps, seen: Any) -> float | None:
    """The error with the product in FP32."""
    gap, head = seen
    again = steps.session.run([head.row])
    after = (recorder_of(again).log_softmax_error or (gap, []))[0]
    return None if after > 0.7 * gap else float(after)


def _words(steps: Steps, seen: Any, after: float) -> Finding:
    gap, head = seen
    format = steps.session.format
    change = (
        f"keep {f'module {head.module}' if head.module else head.row} in FP32: model(...).float() is too late, the "
        "product itself must not be rounded"
    )
    return Finding(
        "logits",
        change,
        f"{place_of(head)}: logits up to {digits(head.largest)} have a step of "
        f"{digits(format.step_at(head.largest))} in {format.label}; log-probabilities are off by up to {digits(gap)} "
        f"nat, probability ratios by a factor of {torch.tensor(gap).exp().item():.3f}.",
        f"tried, and they are off by {digits(after)} nat",
        head,
        **placed_at(None if head.module else head.site),
    )


ROUNDED_LOGITS = Silent("logits", _look, _trial, _words)
