"""Verdict of the watched steps in words: flushed gradients, usable loss scales, lost updates."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from halfscope import Histogram, ScaleAdvice, advise_scale
from halfscope.results.histogram import RecordedHistogram, merge
from halfscope.results.loss_scales import GRADIENTS
from halfscope.torch.observations import Observations

ROLES = ("activation", *GRADIENTS, "update_ratio")


class Totals:
    """Everything seen so far, without the loss scale: histograms by role and tensor, and lost updates."""

    def __init__(self) -> None:
        self._histograms: dict[str, dict[str, Histogram]] = defaultdict(dict)
        self._steps = self._nonzero = self._lost = 0

    def add(self, seen: Observations) -> None:
        self._steps += 1
        for (role, tensor), histogram in seen.all_unscaled():
            known = self._histograms[role]
            if tensor in known:
                known[tensor].merge(histogram)
            else:
                known[tensor] = histogram.scaled(1.0)
        for counters in seen.updates.values():
            self._nonzero += counters.nonzero
            self._lost += counters.lost

    def histograms(self, role: str) -> dict[str, Histogram]:
        """By tensor, copies."""
        return {tensor: found.scaled(1.0) for tensor, found in self._histograms[role].items()}

    def advise_scale(self, **options: Any) -> ScaleAdvice:
        """`halfscope.advise_scale` of the gradients of all layers and weights."""
        gradients = {name: histogram for role in GRADIENTS for name, histogram in self.histograms(role).items()}
        return advise_scale(gradients, **options)

    def verdict(self) -> str:
        gradients = {role: _together(self._histograms[role]) for role in GRADIENTS}
        if not any(histogram.counts.sum() for histogram in gradients.values()):
            return "No gradient has been seen: train a step first."
        sentences = [
            f"Over {self._steps} watched steps: without loss scaling FP16 flushes {_shares(gradients)}.",
            f"Loss scale: {self.advise_scale().verdict}.",
        ]
        if self._nonzero:
            sentences.append(_updates(self._lost / self._nonzero))
        return " ".join(sentences)


def _together(histograms: dict[str, Histogram]) -> RecordedHistogram:
    return merge(map(RecordedHistogram.of, histograms.values()))


def _shares(gradients: dict[str, RecordedHistogram]) -> str:
    parts = []
    for role in GRADIENTS:
        if role in gradients and gradients[role].counts.sum():
            parts.append(f"{_percent(gradients[role].of_nonzero().outcome().flushed)} of the {role.replace('_', ' ')}s")
    return " and ".join(parts)


def _updates(share: float) -> str:
    if share < 0.01:
        return f"FP16 weights would lose {_percent(share)} of the updates."
    return f"FP16 weights would lose {_percent(share)} of the updates: keep an FP32 master copy."


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
