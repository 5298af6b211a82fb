"""Kinds of counts, by the formats that they take: the first one that takes a format counts for it."""

from __future__ import annotations

from halfscope.torch.counts.block_counter import BlockCounter
from halfscope.torch.counts.counter import Counter
from halfscope.torch.counts.histogram_counter import HistogramCounter

COUNTERS = (
    BlockCounter,
    HistogramCounter,
)


def counter_of(format: object) -> Counter:
    """Raises TypeError and ValueError for what is no format."""
    kind = next(kind for kind in COUNTERS if kind.takes(format))
    counter: Counter = kind(format)  # type: ignore[arg-type]
    return counter
