"""Records that a run made while it trained: in files of its own folder, or packed with those of other runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from halfscope import Histogram, _core
from halfscope.results.curves import LossCurve, loss_curve, zero_causes
from halfscope.results.json_files import read_json_lines, require_whole_lines
from halfscope.results.packed import PackedHistograms, PackedRun
from halfscope.results.samples import read_samples

TakeHistogram = Callable[[int, str, str, int, Histogram], object]


class RunRecords(Protocol):
    """Records of one run; all raise ValueError, with file and line, for a damaged one."""

    def steps(self) -> list[dict]:
        """The records of the logged steps, and of others that were counted."""

    def loss_curve(self) -> LossCurve:
        """Means of the loss over windows of steps; without steps where the record keeps none."""

    def zero_causes(self) -> list[dict]:
        """Zeros of weight gradients by cause, per step that was explained."""

    def each_histogram(self, take: TakeHistogram) -> None:
        """Calls take(step, role, tensor, scale_log2, histogram) for every recorded histogram, step by step."""

    def samples(self) -> np.ndarray | None:
        """Images that the run's model has made; None where there are none."""


@dataclass(frozen=True)
class FolderRecords:
    """metrics.jsonl, histograms.jsonl and samples.safetensors in the folder of a run."""

    folder: Path

    def steps(self) -> list[dict]:
        return list(read_json_lines(self.folder / "metrics.jsonl"))

    def loss_curve(self) -> LossCurve:
        return loss_curve(self.steps())

    def zero_causes(self) -> list[dict]:
        return zero_causes(self.steps())

    def each_histogram(self, take: TakeHistogram) -> None:
        path = self.folder / "histograms.jsonl"
        require_whole_lines(path)
        _core.each_histogram(path, take)

    def samples(self) -> np.ndarray | None:
        path = self.folder / "samples.safetensors"
        return read_samples(path) if path.exists() else None


@dataclass(frozen=True)
class PackedRecords:
    """Records of a run in a packed experiment: curves, the counters of its first step at most, and histograms."""

    run: PackedRun
    histograms: PackedHistograms

    def steps(self) -> list[dict]:
        return [self.run.first_step] if self.run.first_step else []

    def loss_curve(self) -> LossCurve:
        return self.run.loss_curve or loss_curve(())

    def zero_causes(self) -> list[dict]:
        return list(self.run.zero_causes)

    def each_histogram(self, take: TakeHistogram) -> None:
        for where, text in self.histograms.of_run(self.run.arm, self.run.seed):
            _core.take_histogram(text, where, take)

    def samples(self) -> np.ndarray | None:
        return None
