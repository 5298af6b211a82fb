"""Watched steps in TensorBoard: histograms of log2 |x|, shares that the watched format flushes, errors of blocks."""

from __future__ import annotations

import os
from math import log2
from typing import Any

from halfscope import Histogram
from halfscope.torch.counts.counter import StepCounts


class Board:
    """Writes into a folder, or with a SummaryWriter of the user's own, which then stays open."""

    def __init__(self, target: str | os.PathLike | object) -> None:
        self._owned = isinstance(target, (str, os.PathLike))
        if not self._owned and not hasattr(target, "add_histogram_raw"):
            raise TypeError(f"watch: tensorboard={target!r}; give a folder or a SummaryWriter")
        self._writer: Any = _open(target) if isinstance(target, (str, os.PathLike)) else target

    def add(self, step: int, scale: float, seen: StepCounts) -> None:
        seen.draw(self, step)
        self.scalar("loss scale, log2", log2(scale), step)

    def scalar(self, name: str, value: float, step: int) -> None:
        self._writer.add_scalar(name, value, step)

    def histogram(self, name: str, histogram: Histogram, step: int) -> None:
        self._writer.add_histogram_raw(name, **_log2_buckets(histogram), global_step=step)

    def close(self) -> None:
        self._writer.close() if self._owned else self._writer.flush()


def _open(folder: str | os.PathLike) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("watch: tensorboard= needs the package tensorboard: pip install tensorboard") from error
    return SummaryWriter(os.fspath(folder))


def _log2_buckets(histogram: Histogram) -> dict:
    """A bucket per binade; the sums take every element for the middle of its own. Zeros, inf and NaN have no log2."""
    record: dict[str, Any] = histogram.record()
    first, counts = record["first_exponent"], record["counts"]
    middles = [first + place + 0.5 for place in range(len(counts))]
    return {
        "min": first, "max": first + len(counts), "num": histogram.nonzero,
        "sum": sum(count * middle for count, middle in zip(counts, middles)),
        "sum_squares": sum(count * middle**2 for count, middle in zip(counts, middles)),
        # TensorBoard's first bucket reaches down from its limit to the minimum: it holds nothing.
        "bucket_limits": [first, *(first + place + 1 for place in range(len(counts)))], "bucket_counts": [0, *counts],
    }  # fmt: skip
