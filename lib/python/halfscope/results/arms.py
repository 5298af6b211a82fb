"""The lines of an experiment's summary: the arms and the predictions. Needs the standard library only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from halfscope.results.json_files import read_versioned_json, require


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
    seconds_per_step: float | None = None  # median
    peak_device_bytes: float | None = None  # None on a CPU
    peak_step_bytes: float | None = None  # counted, of a training step; None in records of earlier versions
    accuracy: float | None = None  # percent, where the metric is another


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
class JudgedArms:
    """Arms that are judged by one metric: its label, with the unit, and the decimals that it is written with."""

    label: str
    arms: tuple[Arm, ...]
    digits: int


def metric_digits(unit: str, arms: Sequence[Arm]) -> int:
    """Decimals that a metric is written with: 81.25 %, a perplexity of 313.3, a loss of 0.347."""
    means = [abs(arm.mean) for arm in arms if arm.mean is not None]
    if unit == "%":
        return 2
    return 1 if means and median(means) >= 10 else 3


_SUMMARY_KEYS = ("experiment", "title", "metric", "unit", "arms")
WATCHED = "watched"  # the only arm of a training that halfscope.torch.watch has seen
_ARM_KEYS = ("arm", "seeds", "mean", "low", "high", "diverged", "values", "lost_updates")
_SHARES = ("flushed", "subnormal", "overflow")
_NEWER_ARM_KEYS = (*_SHARES, "skipped", "seconds_per_step", "peak_device_bytes", "peak_step_bytes", "accuracy")


def read_summary(folder: Path) -> dict:
    """The summary of the experiment in `folder`. Raises ValueError, naming the file, where a key is absent."""
    path = folder / "summary.json"
    summary = read_versioned_json(path)
    require(summary, _SUMMARY_KEYS, path)
    for line in summary["arms"]:
        require(line, _ARM_KEYS, path)
    return summary


def read_arms(summary: dict) -> tuple[Arm, ...]:
    """The arms of a summary, in its order."""
    return tuple(map(_read_arm, summary["arms"]))


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
        **{key: line.get(key) for key in _NEWER_ARM_KEYS},
    )
