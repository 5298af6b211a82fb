"""One training run: its configuration, environment and summary, and its records as data frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from halfscope import Histogram, _core
from halfscope.results.histogram import RecordedHistogram, merge
from halfscope.results.json_files import read_json, read_json_lines, read_versioned_json, require_whole_lines
from halfscope.results.samples import read_samples

# Earlier names of records, read until 0.2.
EARLIER_KINDS = {"fp32_reference": "shadow"}


@dataclass(frozen=True)
class Run:
    """One training run: an arm with a seed. The large files are read where they are first asked for."""

    folder: Path
    config: dict
    environment: dict
    summary: dict

    @property
    def seed(self) -> int:
        return self.summary["seed"]

    @property
    def diverged_step(self) -> int | None:
        """The step at which the run broke down; None where it did not."""
        return self.summary["diverged_step"] if self.summary["diverged"] else None

    @property
    def format(self) -> str:
        """The format that the histograms and counters are for."""
        return self.config.get("format", "fp16")

    @property
    def static_scale(self) -> float | None:
        """The loss scale where it stays the same from the first step to the last; None where a scaler moves it."""
        text = self.config.get("loss_scale", "none")
        if text == "none":
            return 1.0
        try:
            return float(text)
        except ValueError:
            return None

    @cached_property
    def _metrics(self) -> list[dict]:
        return list(read_json_lines(self.folder / "metrics.jsonl"))

    @property
    def steps(self) -> pd.DataFrame:
        """One row per logged step: loss (NaN where it was not finite), metric, scale, skipped; index: step."""
        return self._steps.copy()

    @cached_property
    def _steps(self) -> pd.DataFrame:
        columns = ["step", "loss", "metric", "scale", "skipped"]
        rows = [[record.get(column) for column in columns] for record in self._metrics]
        frame = pd.DataFrame(rows, columns=columns).set_index("step")
        return frame.astype({"loss": float, "metric": float, "scale": float, "skipped": bool})

    def counters(self, kind: str) -> pd.DataFrame:
        """The rows of `kind` (tensors, updates, reductions, fp32_reference), one per recorded step and tensor."""
        if kind not in self._counters:
            earlier = EARLIER_KINDS.get(kind, kind)
            rows = [
                {"step": record["step"], **row}
                for record in self._metrics
                for row in record.get(kind, record.get(earlier, []))
            ]
            self._counters[kind] = pd.DataFrame(rows)
        return self._counters[kind].copy()

    @cached_property
    def _counters(self) -> dict[str, pd.DataFrame]:
        return {}

    @property
    def first_overflows(self) -> dict[int, dict]:
        """By step, for the steps that overflowed: the first tensor with an infinity, and those before it."""
        return {record["step"]: found for record in self._metrics if (found := record.get("first_overflow"))}

    @cached_property
    def samples(self) -> np.ndarray | None:
        """Images (count, height, width, channels) that the run's model has made, from -1 to 1; None of other models."""
        path = self.folder / "samples.safetensors"
        return read_samples(path) if path.exists() else None

    @cached_property
    def histograms(self) -> dict[str, RecordedHistogram]:
        """By role all that was recorded, unscaled. Raises ValueError for counts that are for several formats."""
        sums: dict[tuple[str, str, int], Histogram] = {}  # of one loss scale, which the compiled module adds up

        def add(_step: int, role: str, _tensor: str, scale_log2: int, histogram: Histogram) -> None:
            if (role, histogram.format, scale_log2) in sums:
                sums[role, histogram.format, scale_log2].merge(histogram)
            else:
                sums[role, histogram.format, scale_log2] = histogram

        self.each_histogram(add)
        parts: dict[str, list[RecordedHistogram]] = {}
        for (role, _, scale_log2), histogram in sums.items():
            parts.setdefault(role, []).append(RecordedHistogram.of(histogram).shifted(-scale_log2))
        return {role: merge(of_role) for role, of_role in parts.items()}

    def each_histogram(self, take: Callable[[int, str, str, int, Histogram], object]) -> None:
        """Calls take(step, role, tensor, scale_log2, histogram) for every recorded histogram, step by step.

        scale_log2: of the loss scale that the counts carry.
        """
        path = self.folder / "histograms.jsonl"
        require_whole_lines(path)
        _core.each_histogram(path, take)


def read_status(folder: Path) -> str:
    """DONE, RUNNING, FAILED with the reason, or "not started"."""
    path = folder / "status"
    return path.read_text(encoding="utf-8").strip() if path.exists() else "not started"


def read_run(folder: Path) -> Run:
    """The run in `folder`. Raises ValueError, naming the file, where one is absent or unreadable."""
    return Run(
        folder=folder,
        config=read_versioned_json(folder / "config.json"),
        environment=read_json(folder / "environment.json"),
        summary=read_versioned_json(folder / "summary.json"),
    )
