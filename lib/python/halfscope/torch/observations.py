"""What was seen in one step of training: histograms by role and tensor, and lost updates, as the records hold them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from halfscope import Histogram, UpdateCounters

COLUMNS = ("counts", "pow2", "top", "subnormal_carry")
FIRST_EXPONENT = -149


@dataclass
class Observations:
    """One step's; a tensor that is seen several times (a shared layer, accumulated gradients) is counted together."""

    histograms: dict[tuple[str, str], Histogram] = field(default_factory=dict)  # by role and tensor
    scales: dict[tuple[str, str], float] = field(default_factory=dict)  # the loss scale that the numbers carry
    updates: dict[str, UpdateCounters] = field(default_factory=dict)  # by parameter

    def add(self, role: str, tensor: str, histogram: Histogram, scale: float = 1.0) -> None:
        known = self.histograms.get((role, tensor))
        if known is None:
            self.histograms[role, tensor] = histogram
            self.scales[role, tensor] = scale
        else:
            known.merge(histogram)

    def histogram_records(self, step: int) -> list[dict]:
        """Lines of histograms.jsonl."""
        return [_histogram_record(step, *key, self.scales[key], found) for key, found in self.histograms.items()]

    def tensor_records(self) -> list[dict]:
        """The `tensors` of a line of metrics.jsonl: what FP16 makes of every tensor that was cast, scale included."""
        return [
            _tensor_record(role, tensor, self.scales[role, tensor], found)
            for (role, tensor), found in self.histograms.items()
            if role != "update_ratio"
        ]

    def update_records(self) -> list[dict]:
        return [
            {
                "tensor": tensor, "elements": found.elements, "nonzero": found.nonzero, "lost": found.lost,
                "applied_over_intended": found.applied_over_intended,
            }
            for tensor, found in self.updates.items()
        ]  # fmt: skip


def _histogram_record(step: int, role: str, tensor: str, scale: float, histogram: Histogram) -> dict:
    """The binades from the first to the last that hold anything."""
    binades = histogram.binades()
    filled = np.flatnonzero(binades[:, 0])
    first, last = (filled[0], filled[-1]) if len(filled) else (0, 0)
    return {
        "step": step, "tensor": tensor, "role": role, "scale": scale,
        "first_exponent": FIRST_EXPONENT + int(first),
        **{name: column.tolist() for name, column in zip(COLUMNS, binades[first : last + 1].T)},
        "zeros": histogram.zeros, "negative_zeros": histogram.negative_zeros,
        "infinities": histogram.infinities, "nans": histogram.nans,
    }  # fmt: skip


def _tensor_record(role: str, tensor: str, scale: float, histogram: Histogram) -> dict:
    cast = histogram.what_if(1.0)
    return {
        "tensor": tensor, "role": role, "scale": scale, "elements": cast.elements, "zeros": histogram.zeros,
        "flushed": cast.flushed, "subnormal": cast.subnormal, "overflow": cast.overflow,
        "nonfinite": histogram.infinities + histogram.nans, "max_abs": histogram.max_abs,
    }  # fmt: skip
