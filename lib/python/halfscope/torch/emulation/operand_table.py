"""Operands of products in formats of their own: counts by layer and operand, and a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from halfscope import _core

_COUNTED = (
    "elements", "zeros", "nonfinite", "lost", "flushed", "flushed_by_scale", "subnormal", "clipped", "overflow",
    "blocks", "zero_blocks", "clipped_blocks", "zero_scales", "nan_scales",
)  # fmt: skip


@dataclass
class OperandRow:
    """An operand over all steps; counts of elements, blocks and scales as `BlockCounts` has them."""

    layer: str
    place: str  # "forward.left"
    format: str
    counts: Any = field(default_factory=lambda: _core.BlockCounts())

    def share(self, name: str) -> float:
        """A count of elements, as "clipped", over the finite ones that are not zero."""
        counted = self.counts.elements - self.counts.zeros - self.counts.nonfinite
        return getattr(self.counts, name) / counted if counted else 0.0

    @property
    def flushed_fraction(self) -> float:
        """Flushed elements over the finite ones that are not zero."""
        return self.share("flushed")

    @property
    def decibels(self) -> float:
        """Signal over the error of the rounding: infinite without error, NaN without signal."""
        return float(self.counts.signal_to_noise_db())


class OperandTable:
    """`OperandRow` by layer and operand ("forward.left"); `str` of it is the table, the noisiest operands first."""

    def __init__(self, rows: dict[tuple[str, str], OperandRow]) -> None:
        self._rows = rows

    def __getitem__(self, key: tuple[str, str]) -> OperandRow:
        return self._rows[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def ranked(self) -> list[OperandRow]:
        """The smallest signal-to-noise ratio first; operands without a signal last."""
        return sorted(self._rows.values(), key=lambda row: (math.isnan(row.decibels), row.decibels))

    def to_pandas(self) -> object:
        """A frame with a row for each operand: its format, and the counts."""
        import pandas as pd

        rows = [
            {
                "layer": row.layer, "operand": row.place, "format": row.format, "signal_to_noise_db": row.decibels,
                **{name: getattr(row.counts, name) for name in _COUNTED},
            }
            for row in self._rows.values()
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=["layer", "operand", "format", "signal_to_noise_db", *_COUNTED])

    def __str__(self) -> str:
        shown = self.ranked()[:20]
        width = max([5, *(len(row.layer) for row in shown)])
        lines = [
            f"{'layer':<{width}} {'operand':<21} {'dB':>5} {'flushed':>8} {'clipped':>8} {'zero scales':>11}  format"
        ]
        lines += [
            f"{row.layer:<{width}} {row.place:<21} {row.decibels:>5.1f} {row.flushed_fraction:>7.2%} "
            f"{row.share('clipped'):>7.2%} {row.counts.zero_scales:>11}  {row.format}"
            for row in shown
        ]
        return "\n".join(lines)

    def words(self) -> list[str]:
        """Sentences of the report: what was lost, and of which operand the most; none without an operand."""
        ranked = self.ranked()
        if not ranked:
            return []
        totals = _core.BlockCounts()
        for row in ranked:
            totals.merge(row.counts)
        whole, worst = OperandRow("", "", "", totals), ranked[0]
        formats = ", ".join(sorted({row.format for row in ranked}))
        return [
            f"Operands of products ({formats}): {whole.flushed_fraction:.2%} of the elements flushed, "
            f"{whole.share('clipped'):.2%} clipped; least signal-to-noise {worst.decibels:.1f} dB, "
            f"{worst.layer or 'the model'} {worst.place}."
        ]


class Product(NamedTuple):
    """A product of a module's operations of one kind: "forward" of "linear"."""

    module: str
    operation: str
    product: str


@dataclass
class OperandBook:
    """Rows of a training, and the casts whose delayed scales are its state."""

    rows: dict[tuple[str, str], OperandRow] = field(default_factory=dict)
    products: dict[Product, None] = field(default_factory=dict)  # with formats of their own, in order of first use
    casts: dict[tuple[str, str, str], Any] = field(default_factory=dict)  # by name, place and format

    def cast(self, name: str, place: str, format: str) -> Any:
        found = self.casts.get((name, place, format))
        if found is None:
            found = self.casts[name, place, format] = _core.OperandCast(format, place)
        return found

    def end_step(self, group: Any = None) -> None:
        """Makes the delayed scales of the next step from the largest magnitudes of all ranks of `group`, if any."""
        delayed = {key: cast for key, cast in self.casts.items() if cast.is_delayed}
        if group is not None and delayed:  # a recipe gives all ranks such scales, or none
            for others in _of_all_ranks({key: cast.amax for key, cast in delayed.items()}, group):
                for key, amax in others.items():
                    self.cast(*key).raise_amax(amax)
        for cast in self.casts.values():
            cast.end_step()

    def add(self, layer: str, place: str, format: str, counts: Any) -> None:
        if counts is not None:
            self.rows.setdefault((layer, place), OperandRow(layer, place, format)).counts.merge(counts)


def _of_all_ranks(maxima: dict[tuple[str, str, str], float], group: Any) -> list[Any]:
    every: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(every, maxima, group=group)
    return every
