"""Operands of products in formats of their own: counts by layer and operand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope import BlockCounts, _core
from halfscope.torch.counts.block_table import BlockRow, BlockTable
from halfscope.torch.events.place import Product


class OperandTable(BlockTable):
    """`BlockRow` by layer and operand ("forward.left")."""

    place = "operand"

    def words(self) -> list[str]:
        """Sentences of the report: what was lost, and of which operand the most; none without an operand."""
        ranked = self.ranked()
        if not ranked:
            return []
        totals = BlockCounts()
        for row in ranked:
            totals.merge(row.counts)
        whole, worst = BlockRow("", "", "", totals), ranked[0]
        formats = ", ".join(sorted({row.format for row in ranked}))
        return [
            f"Operands of products ({formats}): {whole.flushed_fraction:.2%} of the elements flushed, "
            f"{whole.share('clipped'):.2%} clipped; least signal-to-noise {worst.decibels:.1f} dB, "
            f"{worst.layer or 'the model'} {worst.place}."
        ]


@dataclass
class OperandBook:
    """Rows of a training, and the casts whose delayed scales are its state."""

    rows: dict[tuple[str, str], BlockRow] = field(default_factory=dict)
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
        if group is not None and delayed:  # a policy gives all ranks such scales, or none
            for others in _of_all_ranks({key: cast.amax for key, cast in delayed.items()}, group):
                for key, amax in others.items():
                    self.cast(*key).raise_amax(amax)
        for cast in self.casts.values():
            cast.end_step()

    def add(self, layer: str, place: str, format: str, counts: Any) -> None:
        if counts is not None:
            self.rows.setdefault((layer, place), BlockRow(layer, place, format)).counts.merge(counts)


def _of_all_ranks(maxima: dict[tuple[str, str, str], float], group: Any) -> list[Any]:
    every: list[Any] = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(every, maxima, group=group)
    return every
