"""Counts of blocks of a watched training: of its tensors, as a block format would have them."""

from __future__ import annotations

import numpy as np
import torch

from halfscope import BlockCounts
from halfscope.formats import is_in_blocks
from halfscope.torch.counts.block_totals import BlockTotals
from halfscope.torch.counts.block_words import block_verdict
from halfscope.torch.counts.blocks import BLOCK_ROLES, WEIGHT, BlockObservations, BlockWeights
from halfscope.torch.counts.histogram_words import Circumstances
from halfscope.torch.counts.ranks import Ranks

_COUNTS = len(BlockCounts().numbers())


class BlockCounter:
    """Counter for every block format."""

    knows_scale = False
    unseen = (
        "Not looked at: blocks along other axes, as the operands of a backward pass have them. "
        "halfscope.torch.emulate(...).operands() has the operands of all products."
    )

    def __init__(self, format: str) -> None:
        self.format = format

    @staticmethod
    def takes(format: object) -> bool:
        return isinstance(format, str) and is_in_blocks(format)

    def observe(self) -> BlockObservations:
        return BlockObservations(self.format)

    def weights(self, owned: dict[str, torch.nn.Parameter]) -> BlockWeights:
        return BlockWeights(owned)

    def totals(self) -> BlockTotals:
        return BlockTotals(self.format)

    def words(self, totals: BlockTotals, about: Circumstances) -> str:
        return block_verdict(totals, about)

    def merge(self, seen: BlockObservations, ranks: Ranks, scale: float) -> None:
        owners = ranks.owners_of_states(seen.counts)
        weights = [(WEIGHT, name) for name in ranks.parameters]
        keys = [*(key for key in ranks.keys if key[0] in BLOCK_ROLES), *weights, *owners]
        numbers = np.zeros((len(keys), _COUNTS), np.int64)
        for row, key in zip(numbers, keys):
            if key in seen.counts and ranks.counts(key, owners.get(key, 0)):
                row[:] = seen.counts[key].numbers()
        (numbers,) = ranks.add_up(numbers)
        seen.counts = {key: BlockCounts.from_numbers(row) for key, row in zip(keys, numbers) if row.any()}
