"""A results folder as values: experiments, their arms, and the runs of every arm with their records as data frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from statistics import median

import pandas as pd

from halfscope.recorded_histogram import RecordedHistogram, from_record, merge
from halfscope.records import read_json, read_json_lines, read_versioned_json, require


@dataclass(frozen=True)
class Arm:
    """One arm's line of the experiment's summary; `mean`, `low` and `high` (95 % interval) are in the metric's unit."""

    name: str
    seeds: int
    mean: float | None
    low: float | None
    high: float | None
    diverged: int
    values: tuple[float | None, ...]
    lost_updates: float | None
    # Shares of the non-zero gradient elements, and steps; None where the results do not hold them.
    flushed: float | None = None
    subnormal: float | None = None
    overflow: float | None = None
    skipped: float | None = None


@dataclass(frozen=True)
class Prediction:
    """Shares of a tensor's elements that become zero at the first step, as the FP32 arm predicts and `arm` counts."""

    arm: str
    scale: float
    tensor: str
    role: str
    elements: int
    predicted: float
    counted: float


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

    @cached_property
    def steps(self) -> pd.DataFrame:
        """One row per logged step: loss (NaN where it was not finite), metric, scale, skipped; index: step."""
        columns = ["step", "loss", "metric", "scale", "skipped"]
        rows = [[record.get(column) for column in columns] for record in self._metrics]
        frame = pd.DataFrame(rows, columns=columns).set_index("step")
        return frame.astype({"loss": float, "metric": float, "scale": float, "skipped": bool})

    def counters(self, kind: str) -> pd.DataFrame:
        """The rows of `kind` (tensors, updates, reductions or shadow), one per step that has them and tensor."""
        rows = [{"step": record["step"], **row} for record in self._metrics for row in record.get(kind, [])]
        return pd.DataFrame(rows)

    @property
    def first_overflows(self) -> dict[int, dict]:
        """By step, for the steps that overflowed: the first tensor with an infinity, and those before it."""
        return {record["step"]: found for record in self._metrics if (found := record.get("first_overflow"))}

    @cached_property
    def histograms(self) -> list[tuple[str, RecordedHistogram]]:
        """Every recorded histogram with its role, unscaled."""
        path = self.folder / "histograms.jsonl"
        return [(record["role"], from_record(record)) for record in read_json_lines(path)]


@dataclass(frozen=True)
class JudgedArms:
    """Arms that are judged by one metric: its label, with the unit, and the decimals that it is written with."""

    label: str
    arms: tuple[Arm, ...]
    digits: int


def _digits(unit: str, arms: Sequence[Arm]) -> int:
    means = [abs(arm.mean) for arm in arms if arm.mean is not None]
    if unit == "%":
        return 2
    return 1 if means and median(means) >= 10 else 3


@dataclass(frozen=True)
class Experiment:
    """The arms of one experiment side by side, and their finished runs."""

    folder: Path
    summary: dict
    arms: tuple[Arm, ...]
    runs: dict[str, list[Run]]  # by arm, in order of seed
    unfinished: tuple[str, ...]  # "arm, seed k: status" of runs that have no result

    @property
    def name(self) -> str:
        return self.summary["experiment"]

    @property
    def title(self) -> str:
        return self.summary["title"]

    @property
    def metric_label(self) -> str:
        """Name and unit, as it stands on an axis."""
        metric, unit = self.summary["metric"], self.summary["unit"]
        return f"{metric} ({unit})" if unit else metric

    @property
    def lower_is_better(self) -> bool:
        return self.summary.get("lower_is_better", False)

    @property
    def digits(self) -> int:
        """Decimals that the metric is written with: 81.25 %, a perplexity of 313.3, a loss of 0.347."""
        return _digits(self.summary["unit"], self.arms)

    @property
    def metrics(self) -> list[JudgedArms]:
        """The arms by what they are judged by: all together, unless the metric is named "ONE / OTHER" and they are of as
        many models."""
        labels, unit = self.metric_label.split(" / "), self.summary["unit"]
        by_model: dict[str, list[Arm]] = {}
        for arm in self.arms:
            runs = self.runs.get(arm.name, [])
            by_model.setdefault(runs[0].config.get("model", "") if runs else "", []).append(arm)
        if len(labels) == 1 or len(labels) != len(by_model):
            return [JudgedArms(self.metric_label, self.arms, self.digits)]
        return [JudgedArms(label, tuple(arms), _digits(unit, arms)) for label, arms in zip(labels, by_model.values())]

    @cached_property
    def predictions(self) -> tuple[Prediction, ...]:
        """In the order of the backward pass, nearest the loss first, arm by arm."""
        names = [field.name for field in fields(Prediction)]
        return tuple(Prediction(*(line[name] for name in names)) for line in self.summary.get("predictions") or ())

    def histogram(self, arm: str, role: str) -> RecordedHistogram:
        """All that was recorded of `role` in `arm`, over steps, tensors and seeds, unscaled."""
        return merge(histogram for run in self.runs[arm] for kind, histogram in run.histograms if kind == role)


def read_experiment(folder: Path | str) -> Experiment:
    """The experiment in `folder`. Raises ValueError, naming the file, where a record is absent or unreadable."""
    folder = Path(folder)
    summary = read_versioned_json(folder / "summary.json")
    require(summary, ("experiment", "title", "metric", "unit", "arms"), folder / "summary.json")
    for line in summary["arms"]:
        require(line, _ARM_KEYS, folder / "summary.json")
    runs: dict[str, list[Run]] = {}
    unfinished = []
    for line in summary["arms"]:
        runs[line["arm"]] = []
        for seed_folder in sorted((folder / line["arm"]).glob("seed*"), key=lambda path: int(path.name[4:])):
            status = _read_status(seed_folder)
            if status == "DONE":
                runs[line["arm"]].append(_read_run(seed_folder))
            else:
                unfinished.append(f"{line['arm']}, seed {seed_folder.name[4:]}: {status}")
    return Experiment(folder, summary, tuple(map(_read_arm, summary["arms"])), runs, tuple(unfinished))


def read_results(folder: Path | str) -> list[Experiment]:
    """Every experiment in `folder`, a results folder or an experiment's own; ValueError where there is none."""
    folder = Path(folder)
    experiments = [read_experiment(path) for path in _experiment_folders(folder)]
    if not experiments:
        raise ValueError(f"{folder}: no results here; expected EXPERIMENT/summary.json, as 'halfscope run' writes it")
    return experiments


def _experiment_folders(folder: Path) -> Iterator[Path]:
    if (folder / "summary.json").exists():
        yield folder
    else:
        yield from (path.parent for path in sorted(folder.glob("*/summary.json")))


_ARM_KEYS = ("arm", "seeds", "mean", "low", "high", "diverged", "values", "lost_updates")


def _read_arm(line: dict) -> Arm:
    return Arm(
        name=line["arm"],
        seeds=line["seeds"],
        mean=line["mean"],
        low=line["low"],
        high=line["high"],
        diverged=line["diverged"],
        values=tuple(line["values"]),
        lost_updates=line["lost_updates"],
        **{name: line.get(name) for name in ("flushed", "subnormal", "overflow", "skipped")},
    )


def _read_status(folder: Path) -> str:
    path = folder / "status"
    return path.read_text(encoding="utf-8").strip() if path.exists() else "not started"


def _read_run(folder: Path) -> Run:
    return Run(
        folder=folder,
        config=read_versioned_json(folder / "config.json"),
        environment=read_json(folder / "environment.json"),
        summary=read_versioned_json(folder / "summary.json"),
    )
