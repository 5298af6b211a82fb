"""Observations of one training step for a block format: counts of blocks by role and tensor."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from halfscope import BlockCounts, count_blocks
from halfscope.torch.counts.histograms import AT_OPTIMIZER, Observations
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


class BlockWeights:
    """An optimizer's parameters, counted as a step leaves them; as `Weights` without copies."""

    def __init__(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        self.parameters = parameters

    def keep(self, also_without_gradient: bool) -> None:
        """Nothing: a block format is not asked which updates it loses."""

    def release(self) -> None:
        """Nothing."""

    def count_updates(self, seen: Seen) -> None:
        seen.count_all(WEIGHT, dict(self.parameters), 1.0)


Seen = Observations | BlockObservations
