"""Rows of counts of blocks by tensor, and their table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from halfscope import BlockCounts
from halfscope.format_comparison import ELEMENTS

COUNTED = (*ELEMENTS, "blocks", "zero_blocks", "clipped_blocks", "blocks_at_risk", "zero_scales", "nan_scales")


@dataclass
class BlockRow:
    """A tensor over all steps; counts of elements, blocks and scales as `halfscope.BlockCounts` has them."""

    layer: str
    place: str  # operand, as "forward.left", or role, as "weight"
    format: str
    counts: BlockCounts = field(default_factory=BlockCounts)

    def share(self, name: str) -> float:
        """A count of elements, as "clipped", over the finite ones that are not zero."""
        counted = self.counts.elements - self.counts.zeros - self.counts.nonfinite
        return getattr(self.counts, name) / counted if counted else 0.0

    @property
    def flushed_fraction(self) -> float:
        """Flushed elements over the finite ones that are not zero."""
        return self.share("flushed")

    @property
    def error(self) -> float:
        """Norm of the rounding's error over that of the tensor; infinite if the format loses finite elements."""
        return self.counts.relative_error()

    @property
    def decibels(self) -> float:
        """Signal over the error of the rounding: infinite without error, NaN without signal."""
        return self.counts.signal_to_noise_db()


class BlockTable:
    """`BlockRow` by layer and place; `str` of it is the table, the noisiest tensors first."""

    place = "role"  # the heading

    def __init__(self, rows: dict[tuple[str, str], BlockRow]) -> None:
        self._rows = rows

    def __getitem__(self, key: tuple[str, str]) -> BlockRow:
        return self._rows[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def ranked(self) -> list[BlockRow]:
        """The smallest signal-to-noise ratio first; tensors without a signal last."""
        return sorted(self._rows.values(), key=lambda row: (math.isnan(row.decibels), row.decibels))

    def to_pandas(self) -> object:
        """A frame with a row for each tensor: its format, and the counts."""
        import pandas as pd

        rows = [
            {
                "layer": row.layer, self.place: row.place, "format": row.format, "signal_to_noise_db": row.decibels,
                **{name: getattr(row.counts, name) for name in COUNTED},
            }
            for row in self._rows.values()
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["layer", self.place, "format", "signal_to_noise_db", *COUNTED])

    def __str__(self) -> str:
        shown = self.ranked()[:20]
        width = max([5, *(len(row.layer) for row in shown)])
        lines = [f"{'layer':<{width}} {self.place:<21} {'dB':>5} {'flushed':>8} {'clipped':>8} {'at risk':>8}  format"]
        lines += [
            f"{row.layer:<{width}} {row.place:<21} {row.decibels:>5.1f} {row.flushed_fraction:>7.2%} "
            f"{row.share('clipped'):>7.2%} {row.counts.blocks_at_risk:>8}  {row.format}"
            for row in shown
        ]
        return "\n".join(lines)
