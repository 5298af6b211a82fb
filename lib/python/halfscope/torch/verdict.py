"""Verdict of the watched steps in words: flushed gradients, usable loss scales, lost updates."""

from __future__ import annotations

from collections import defaultdict

from halfscope import Histogram
from halfscope.results.histogram import RecordedHistogram, merge
from halfscope.results.loss_scales import GRADIENTS, Window, window
from halfscope.torch.observations import Observations

HEADROOM = 3  # binades that a recommended scale leaves, where the window has them, for gradients yet to come
NAMED = 3  # layers that a sentence lists
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

    def verdict(self) -> str:
        gradients = {role: _together(self._histograms[role]) for role in GRADIENTS}
        if not any(histogram.counts.sum() for histogram in gradients.values()):
            return "No gradient has been seen: train a step first."
        sentences = [f"Over {self._steps} watched steps: without loss scaling FP16 flushes {_shares(gradients)}."]
        sentences.append(self._scales(window(gradients)))
        if self._nonzero:
            sentences.append(_updates(self._lost / self._nonzero))
        return " ".join(sentences)

    def _scales(self, found: Window | None) -> str:
        assert found is not None  # there are non-zero gradients
        if not found.empty:
            best = max(found.low, found.high - HEADROOM)
            return (
                f"Loss scales from 2^{found.low} to 2^{found.high} flush at most 1 % and overflow nothing; "
                f"2^{best} is recommended."
            )
        single = {
            name: window({role: RecordedHistogram.of(histogram)})
            for role in GRADIENTS
            for name, histogram in self._histograms[role].items()
        }
        needy = sorted((w.low, name) for name, w in single.items() if w and w.low > found.high)[::-1]
        large = sorted((w.high, name) for name, w in single.items() if w and w.high < found.low)
        return f"No single scale fits: {_list(large)} overflow below 2^{found.low}, which {_list(needy)} need."


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


def _list(tensors: list[tuple[int, str]]) -> str:
    names = [name for _, name in tensors]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return (", ".join(names[:NAMED]) or "some") + more


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
