"""Curves of a run in a few numbers, as packed records keep them. Needs the standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

MOST_WINDOWS = 50

LossCurve = dict[str, Any]  # steps: the last step of each window; loss: the mean over it, None where one is not finite


def loss_curve(records: Iterable[Mapping[str, Any]]) -> LossCurve:
    """Means of the loss, six digits, over at most 50 windows of as many logged steps; the last may be shorter."""
    logged = [(record["step"], record["loss"]) for record in records if "loss" in record]
    size = max(1, -(-len(logged) // MOST_WINDOWS))
    windows = [logged[first : first + size] for first in range(0, len(logged), size)]
    return {"steps": [window[-1][0] for window in windows], "loss": [_mean(window) for window in windows]}


def _mean(window: list[tuple[int, float | None]]) -> float | None:
    losses = [loss for _, loss in window if loss is not None and math.isfinite(loss)]
    return float(f"{math.fsum(losses) / len(losses):.6g}") if len(losses) == len(window) else None


def zero_causes(records: Iterable[Mapping[str, Any]]) -> list[dict[str, int]]:
    """Counts of zeros in weight gradients by cause, all tensors together, with the step; empty without any."""
    sums = []
    for record in records:
        if not record.get("zero_causes"):
            continue
        total = {"step": record["step"]}
        for tensor in record["zero_causes"]:
            for key, count in tensor.items():
                if key != "tensor":
                    total[key] = total.get(key, 0) + count
        sums.append(total)
    return sums
