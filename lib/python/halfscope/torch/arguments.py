"""Arguments of `watch` that belong together, checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from halfscope.torch.records import Sinks
from halfscope.torch.run_folder import RunFolder
from halfscope.torch.steps import optimizers_of
from halfscope.torch.tensorboard import Board


class Trainers:
    """Optimizers and the GradScaler of a training."""

    def __init__(self, optimizer: Any, scaler: Any) -> None:
        self.optimizers, self.scaler = optimizers_of(optimizer), scaler
        if scaler is not None and not (hasattr(scaler, "get_scale") and hasattr(scaler, "update")):
            raise TypeError(f"watch: scaler={scaler!r}; give a GradScaler")


class Outputs:
    """Destinations of the counts."""

    def __init__(self, out: Path | str | None, tensorboard: object, ranks: Any) -> None:
        self.out, self.tensorboard, self.ranks = out, tensorboard, ranks

    def open(self, first_rank: bool) -> Sinks:
        """One rank writes for all."""
        if not first_rank:
            return Sinks(None, None)
        board = None if self.tensorboard is None else Board(self.tensorboard)
        return Sinks(RunFolder(Path(self.out)) if self.out else None, board)
