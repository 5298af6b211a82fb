"""Arguments of `watch` that belong together, checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from halfscope import _core
from halfscope.formats import describe, is_in_blocks
from halfscope.torch.counts.block_totals import BlockTotals
from halfscope.torch.counts.blocks import BlockObservations, BlockWeights, Seen
from halfscope.torch.counts.histograms import OPTIMIZER_STATE, Observations
from halfscope.torch.counts.totals import Totals
from halfscope.torch.counts.weights import Weights
from halfscope.torch.steps.board import Board
from halfscope.torch.steps.optimizers import optimizers_of
from halfscope.torch.steps.records import Sinks
from halfscope.torch.steps.run_folder import RunFolder
from halfscope.torch.tensors.elements import Choice


class Plan:
    """Which steps and tensors are watched, and for which format."""

    def __init__(
        self, every: int, choice: Choice, format: str, observe_roles: str | Iterable[str], operations: bool = False
    ) -> None:
        if every < 1:
            raise ValueError(f"watch: every={every}; give 1 or more steps")
        self.every, self.choice = every, choice
        self.in_blocks = isinstance(format, str) and is_in_blocks(format)
        self.format: str = format if self.in_blocks else _canonical(format)
        roles = {observe_roles} if isinstance(observe_roles, str) else set(observe_roles)
        if not roles <= {OPTIMIZER_STATE}:
            raise ValueError(
                f"watch: observe_roles={observe_roles!r}; give {OPTIMIZER_STATE!r} or nothing: all others are observed"
            )
        self.optimizer_state = bool(roles)
        self.operations = operations and not self.in_blocks

    def observe(self) -> Seen:
        """Observations of a step that begins."""
        return BlockObservations(self.format) if self.in_blocks else Observations(self.format)

    def weights(self, owned: dict[str, torch.nn.Parameter]) -> Weights | BlockWeights:
        """An optimizer's parameters, to be counted when it steps."""
        return BlockWeights(owned) if self.in_blocks else Weights(owned)

    def totals(self) -> Totals | BlockTotals:
        """Counts of all steps, none yet."""
        return BlockTotals(self.format) if self.in_blocks else Totals(self.format)


def _canonical(format: object) -> str:
    """The format's own name: fp16 for e5m10."""
    if not isinstance(format, str):
        raise TypeError(f"watch: format={format!r}; give a name, such as 'bf16', 'fp8_e4m3' or 'e5m7'")
    try:
        _core.code_bits(format)
        return describe(format)["format"]
    except ValueError as error:
        raise ValueError(f"watch: format={format!r}: {error}") from None


class Trainers:
    """Optimizers and the GradScaler of a training."""

    def __init__(self, optimizer: Any, scaler: Any) -> None:
        self.optimizers, self.scaler = optimizers_of(optimizer), scaler
        if scaler is not None and not (hasattr(scaler, "get_scale") and hasattr(scaler, "update")):
            raise TypeError(f"watch: scaler={scaler!r}; give a GradScaler")


class Outputs:
    """Destinations of the counts."""

    def __init__(self, out: Path | str | RunFolder | None, tensorboard: object, ranks: Any) -> None:
        self.out, self.tensorboard, self.ranks = out, tensorboard, ranks

    def open(self, first_rank: bool) -> Sinks:
        """One rank writes for all."""
        if not first_rank:
            return Sinks(None, None)
        board = None if self.tensorboard is None else Board(self.tensorboard)
        if isinstance(self.out, RunFolder):
            return Sinks(self.out, board)
        return Sinks(RunFolder(Path(self.out)) if self.out else None, board)
