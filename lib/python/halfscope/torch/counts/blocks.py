"""Observations of one training step for a block format: counts of blocks by role and tensor."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

import torch

from halfscope import BlockCounts, count_blocks
from halfscope.results.json_files import finite_or_none
from halfscope.torch.counts.block_table import COUNTED, BlockRow
from halfscope.torch.counts.counter import Canvas, StepCounts
from halfscope.torch.counts.histograms import AT_OPTIMIZER
from halfscope.torch.tensors.elements import Unreadable, format_of, on_host

WEIGHT = "weight"
BLOCK_ROLES = ("activation", "activation_gradient", WEIGHT, "weight_gradient")
_CHANNELS = 4  # axes from which on the second one has the channels


@dataclass
class BlockObservations:
    """One step's. The loss scale stays in gradients: a block's own scale takes a power of two up.

    Blocks run along the last axis, of tensors with four axes or more along the second, the channels. Vectors, as biases
    and the weights of norms, are no operands of products, and are not counted among the weights and their gradients.
    """

    format: str
    counts: dict[tuple[str, str], BlockCounts] = field(default_factory=dict)  # by role and tensor
    formats: dict[tuple[str, str], str] = field(default_factory=dict)  # formats in which the tensors came
    unreadable: dict[str, str] = field(default_factory=dict)  # by tensor: why it was not counted

    def count(self, role: str, tensor: str, given: torch.Tensor, scale: float = 1.0) -> None:
        """A tensor that is seen several times, such as a shared layer's output, is counted together."""
        if given.dim() < (1 if role in ("activation", "activation_gradient") else 2):
            return
        try:
            elements = on_host(given)
        except Unreadable as reason:
            self.unreadable[tensor] = str(reason)
            return
        self.formats[role, tensor] = format_of(given)
        if elements.dtype is torch.float64:
            elements = elements.float()
        found = count_blocks(elements, self.format, axis=1 if elements.dim() >= _CHANNELS else -1)
        known = self.counts.setdefault((role, tensor), found)
        if known is not found:
            known.merge(found)

    def count_all(self, role: str, tensors: dict[str, torch.Tensor], scale: float) -> None:
        for name, tensor in tensors.items():
            self.count(role, name, tensor, scale)

    def recount(self, role: str, tensors: dict[str, torch.Tensor], scale: float) -> None:
        """Counts `tensors` in place of what was counted of them; those at the optimizer are not counted again."""
        if role != AT_OPTIMIZER:
            for name in tensors:
                self.counts.pop((role, name), None)
            self.count_all(role, tensors, scale)

    def finish(self) -> None:
        """Nothing: no count waits for a device."""

    def gradients(self, scale: float) -> None:
        """Nothing: a block's own scale takes the loss scale up."""

    def line(self) -> dict:
        """The `blocks` of a line of metrics.jsonl: effects of the format on each tensor."""
        records = [
            {
                "tensor": tensor, "role": role, **{name: getattr(found, name) for name in COUNTED},
                "relative_error": finite_or_none(found.relative_error()),
                "scales_log2": found.scale_range(self.format),
            }
            for (role, tensor), found in self.counts.items()
        ]  # fmt: skip
        return {"blocks": records}

    def histogram_lines(self, step: int) -> list[dict]:
        """None."""
        return []

    def draw(self, board: Canvas, step: int) -> None:
        """Shares of elements that are flushed, and signal-to-noise ratios."""
        for (role, tensor), counts in self.counts.items():
            row = BlockRow(tensor, role, self.format, counts)
            board.scalar(f"flushed by {self.format}, {role}/{tensor}", row.flushed_fraction, step)
            if isfinite(row.decibels):  # no number of tensors without error or without signal
                board.scalar(f"signal over noise of {self.format}, dB, {role}/{tensor}", row.decibels, step)


class BlockWeights:
    """An optimizer's parameters, counted as a step leaves them; as `Weights` without copies."""

    def __init__(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        self.parameters = parameters

    def keep(self, also_without_gradient: bool) -> None:
        """Nothing: a block format is not asked which updates it loses."""

    def release(self) -> None:
        """Nothing."""

    def count_updates(self, seen: StepCounts) -> None:
        seen.count_all(WEIGHT, dict(self.parameters), 1.0)
