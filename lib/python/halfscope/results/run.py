"""One training run: its configuration, environment and summary, and its records as data frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from halfscope import Histogram
from halfscope.old_words import SETTINGS
from halfscope.results.arms import static_scale
from halfscope.results.histogram import RecordedHistogram, merge
from halfscope.results.json_files import read_json, read_versioned_json
from halfscope.results.packed import ENVIRONMENT, PackedHistograms, PackedRun, read_packed_runs
from halfscope.results.run_records import FolderRecords, PackedRecords, RunRecords, TakeHistogram


@dataclass(frozen=True)
class Run:
    """One training run: an arm with a seed. The large files are read where they are first asked for."""

    folder: Path  # a packed run has the folder that it was in, under the experiment's
    config: dict
    environment: dict
    summary: dict
    records: RunRecords = field(repr=False, compare=False)

    @property
    def settings(self) -> dict:
        """Values by setting, as `halfscope list settings` names them; `config` has the keys of config.json."""
        return {SETTINGS.get(key, key): value for key, value in self.config.items()}

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
        return static_scale(self.config.get("loss_scale", "none"))

    @property
    def final_scale(self) -> float | None:
        """The loss scale of the last logged step, or where no step is recorded the summary's."""
        return float(self._steps["scale"].iloc[-1]) if len(self._steps) else self.summary.get("final_scale")

    @cached_property
    def _metrics(self) -> list[dict]:
        return self.records.steps()

    @property
    def steps(self) -> pd.DataFrame:
        """One row per logged step: loss (NaN where it was not finite), metric, scale, skipped; index: step."""
        return self._steps.copy()

    @cached_property
    def _steps(self) -> pd.DataFrame:
        columns = ["step", "loss", "metric", "scale", "skipped"]
        logged = (record for record in self._metrics if "loss" in record)
        rows = [[record.get(column) for column in columns] for record in logged]
        frame = pd.DataFrame(rows, columns=columns).set_index("step")
        return frame.astype({"loss": float, "metric": float, "scale": float, "skipped": bool})

    @cached_property
    def loss_curve(self) -> pd.Series:
        """The mean loss of at most 50 windows of steps, NaN where one was not finite; index: a window's last step."""
        curve = self.records.loss_curve()
        return pd.Series(curve["loss"], index=pd.Index(curve["steps"], name="step", dtype=int), dtype=float)

    @cached_property
    def zero_causes(self) -> pd.DataFrame:
        """Zeros of weight gradients, all tensors together: elements, zeros and a column per cause; index: step."""
        rows = pd.DataFrame(self.records.zero_causes())
        return rows if rows.empty else rows.set_index("step")

    def counters(self, kind: str) -> pd.DataFrame:
        """Rows of `kind`, by recorded step and tensor.

        kind: "tensors", "updates", "reductions", "operands", "blocks" or "fp32_reference".
        """
        if kind not in self._counters:
            rows = [{"step": record["step"], **row} for record in self._metrics for row in record.get(kind, [])]
            self._counters[kind] = pd.DataFrame(rows)
        return self._counters[kind].copy()

    @cached_property
    def _counters(self) -> dict[str, pd.DataFrame]:
        return {}

    @property
    def first_overflows(self) -> dict[int, dict]:
        """First tensor with an infinity and those before it, by step, of the steps that overflowed."""
        return {record["step"]: found for record in self._metrics if (found := record.get("first_overflow"))}

    @cached_property
    def samples(self) -> np.ndarray | None:
        """Images (count, height, width, channels) that the run's model has made, from -1 to 1; None of other models."""
        return self.records.samples()

    @cached_property
    def histograms(self) -> dict[str, RecordedHistogram]:
        """Sum of the recorded histograms by role, unscaled. Raises ValueError for counts of several formats."""
        sums: dict[tuple[str, str, int], Histogram] = {}  # sums at one loss scale, which the compiled module adds up

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

    def each_histogram(self, take: TakeHistogram) -> None:
        """Calls take(step, role, tensor, scale_log2, histogram) for every recorded histogram, step by step.

        scale_log2: of the loss scale that the counts carry.
        """
        self.records.each_histogram(take)


def read_status(folder: Path) -> str:
    """DONE, RUNNING, FAILED with the reason, or "not started"."""
    path = folder / "status"
    return path.read_text(encoding="utf-8").strip() if path.exists() else "not started"


def read_run(folder: Path) -> Run:
    """The run in `folder`. Raises ValueError, naming the file, where one is absent or unreadable."""
    return Run(
        folder=folder,
        config=read_versioned_json(folder / "config.json"),
        environment=read_json(folder / ENVIRONMENT),
        summary=read_versioned_json(folder / "summary.json"),
        records=FolderRecords(folder),
    )


def unpacked_runs(folder: Path) -> dict[str, list[Run]]:
    """The runs of a packed experiment by arm, in order of seed. Raises ValueError, with file and line, as above."""
    environment = read_json(folder / ENVIRONMENT)
    histograms = PackedHistograms(folder)
    found: dict[str, list[Run]] = {}
    for packed in sorted(read_packed_runs(folder), key=lambda run: run.seed):
        found.setdefault(packed.arm, []).append(_unpacked(folder, packed, environment, histograms))
    return found


def _unpacked(folder: Path, packed: PackedRun, environment: dict, histograms: PackedHistograms) -> Run:
    return Run(
        folder=folder / packed.arm / f"seed{packed.seed}",
        config=packed.config,
        environment=environment,
        summary=packed.summary,
        records=PackedRecords(packed, histograms),
    )
