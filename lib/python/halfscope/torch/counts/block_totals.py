"""Everything that a watch has counted for a block format."""

from __future__ import annotations

from halfscope.torch.counts.block_table import BlockRow, BlockTable
from halfscope.torch.counts.blocks import BlockObservations


class BlockTotals:
    """All watched steps together."""

    def __init__(self, format: str) -> None:
        self.format = format
        self.steps = 0
        self.rows: dict[tuple[str, str], BlockRow] = {}  # by tensor and role
        self.unreadable: dict[str, str] = {}  # by tensor

    def add(self, seen: BlockObservations) -> None:
        self.steps += 1
        for (role, tensor), counts in seen.counts.items():
            self.rows.setdefault((tensor, role), BlockRow(tensor, role, self.format)).counts.merge(counts)
        self.unreadable |= seen.unreadable

    def table(self) -> BlockTable:
        return BlockTable(dict(self.rows))

    def of(self, role: str) -> list[BlockRow]:
        """Tensors of a role that have a finite element other than zero."""
        rows = (row for row in self.rows.values() if row.place == role)
        return [row for row in rows if row.counts.elements > row.counts.zeros + row.counts.nonfinite]
