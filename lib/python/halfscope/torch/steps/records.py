"""Records of the steps that have ended: the trace, the run's folder, TensorBoard."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from halfscope.torch.counts.counter import StepCounts
from halfscope.torch.steps.board import Board
from halfscope.torch.steps.run_folder import RunFolder


class Sinks(NamedTuple):
    """Destinations of watched steps."""

    folder: RunFolder | None
    board: Board | None


class Records:
    """One step is held back until the next one ends, for its loss may be logged late."""

    def __init__(self, sinks: Sinks) -> None:
        self._folder, self._board = sinks
        self._trace: list[str] = []  # as text, which takes a tenth of the memory
        self._held: tuple[dict[str, Any], StepCounts | None] | None = None

    @property
    def wants_all_steps(self) -> bool:
        return self._folder is not None

    def begin(self, settings: dict) -> None:
        if self._folder:
            self._folder.begin(settings)

    def add(self, record: dict[str, Any], seen: StepCounts | None) -> None:
        """seen: of a watched step."""
        gradients = None if seen is None else seen.gradients(record["scale"])
        if gradients is not None:
            record["gradients"] = gradients
            self._trace.append(json.dumps({key: record[key] for key in ("step", "scale", "gradients")}))
        if seen is not None and self._board:
            self._board.add(record["step"], record["scale"], seen)
        self._write_held()
        self._held = (record, seen)

    def lacks_loss(self) -> bool:
        """Whether the step that ended last has none."""
        return self._held is not None and self._held[0]["loss"] is None

    def log_late(self, loss: float) -> None:
        """The loss of the step that ended last."""
        if self._held is not None:
            self._held[0]["loss"] = loss

    def trace(self) -> list[dict]:
        return list(map(json.loads, self._trace))

    def finish(self, steps: int, verdict: str) -> None:
        """Ends the records of an experiment that has no other run."""
        self._write_held()
        if self._folder:
            self._folder.finish_alone(steps, verdict)
        self._close_board()

    def finish_run(self, steps: int, metric: float | None, counts: dict) -> None:
        """Ends the records of one of an experiment's runs."""
        self._write_held()
        if self._folder:
            self._folder.finish(steps, metric, counts)

    def fail(self, reason: BaseException) -> None:
        self._write_held()
        if self._folder:
            self._folder.fail(reason)
        self._close_board()

    def _write_held(self) -> None:
        if self._held is not None and self._folder:
            self._folder.add(*self._held)
        self._held = None

    def _close_board(self) -> None:
        if self._board:
            self._board.close()
