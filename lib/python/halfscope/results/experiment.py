"""A results folder as values: experiments with their arms, and the runs of every arm."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

from halfscope.results.arms import Arm, JudgedArms, Prediction, metric_digits, read_arms, read_summary
from halfscope.results.folders import experiment_folders
from halfscope.results.histogram import RecordedHistogram, merge
from halfscope.results.packed import RUNS, is_packed
from halfscope.results.run import Run, read_run, read_status, unpacked_runs


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
        return metric_digits(self.summary["unit"], self.arms)

    @property
    def metrics(self) -> list[JudgedArms]:
        """The arms by their metric: one group, unless the metric is named "ONE / OTHER" for two models."""
        labels, unit = self.metric_label.split(" / "), self.summary["unit"]
        by_model: dict[str, list[Arm]] = {}
        for arm in self.arms:
            runs = self.runs.get(arm.name, [])
            by_model.setdefault(runs[0].config.get("model", "") if runs else "", []).append(arm)
        if len(labels) == 1 or len(labels) != len(by_model):
            return [JudgedArms(self.metric_label, self.arms, self.digits)]
        return [
            JudgedArms(label, tuple(arms), metric_digits(unit, arms)) for label, arms in zip(labels, by_model.values())
        ]

    @cached_property
    def predictions(self) -> tuple[Prediction, ...]:
        """Predictions arm by arm, in the order of the backward pass: nearest the loss first."""
        names = [field.name for field in fields(Prediction)]
        return tuple(Prediction(*(line[name] for name in names)) for line in self.summary.get("predictions") or ())

    def arm(self, name: str) -> Arm:
        """The arm that is called `name`."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Arm]:
        return {arm.name: arm for arm in self.arms}

    def format_of(self, arm: str) -> str:
        """The format that the counts of `arm` are for."""
        return self.runs[arm][0].format if self.runs.get(arm) else "fp16"

    def histogram(self, arm: str, role: str) -> RecordedHistogram:
        """All that was recorded of `role` in `arm`, over steps, tensors and seeds, unscaled."""
        return merge(run.histograms[role] for run in self.runs[arm] if role in run.histograms)


def read_experiment(folder: Path | str) -> Experiment:
    """The experiment in `folder`, packed or with a folder per run.

    Raises ValueError, naming the file, where a record is absent or unreadable.
    """
    folder = Path(folder)
    summary = read_summary(folder)
    names = [line["arm"] for line in summary["arms"]]
    runs, unfinished = _packed(folder, names) if is_packed(folder) else _in_folders(folder, names)
    arms = read_arms(summary, {arm: found[0].config for arm, found in runs.items() if found})
    return Experiment(folder, summary, arms, runs, unfinished)


def _packed(folder: Path, arms: list[str]) -> tuple[dict[str, list[Run]], tuple[str, ...]]:
    found = unpacked_runs(folder)
    for arm in found.keys() - set(arms):
        raise ValueError(f"{folder / RUNS}: summary.json has no arm {arm}; halfscope report --save makes it anew")
    return {arm: found.get(arm, []) for arm in arms}, ()


def _in_folders(folder: Path, arms: list[str]) -> tuple[dict[str, list[Run]], tuple[str, ...]]:
    """The finished runs by arm, and the others as "arm, seed k: status"."""
    runs: dict[str, list[Run]] = {arm: [] for arm in arms}
    unfinished = []
    for arm in arms:
        for seed_folder in _seed_folders(folder / arm):
            status = read_status(seed_folder)
            if status == "DONE":
                runs[arm].append(read_run(seed_folder))
            else:
                unfinished.append(f"{arm}, seed {seed_folder.name[4:]}: {status}")
    return runs, tuple(unfinished)


def _seed_folders(arm: Path) -> list[Path]:
    """Folders called seed<k>, in order of k; others are no runs."""
    numbered = ((match[1], path) for path in arm.glob("seed*") if (match := re.fullmatch(r"seed(\d+)", path.name)))
    return [path for _, path in sorted(numbered, key=lambda entry: int(entry[0]))]


def read_results(folder: Path | str) -> list[Experiment]:
    """Every experiment in `folder`, a results folder or an experiment's own; ValueError where there is none."""
    return [read_experiment(path) for path in experiment_folders(Path(folder))]
