"""Arguments of `watch` that belong together, checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from halfscope.torch.counts.counters import counter_of
from halfscope.torch.counts.histograms import OPTIMIZER_STATE
from halfscope.torch.steps.board import Board
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
        self.counter = counter_of(format)
        roles = {observe_roles} if isinstance(observe_roles, str) else set(observe_roles)
        if not roles <= {OPTIMIZER_STATE}:
            raise ValueError(
                f"watch: observe_roles={observe_roles!r}; give {OPTIMIZER_STATE!r} or nothing: all others are observed"
            )
        self.optimizer_state = bool(roles)
        self.operations = operations and self.counter.knows_scale

    @property
    def format(self) -> str:
        """Name of the format."""
        return self.counter.format


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
