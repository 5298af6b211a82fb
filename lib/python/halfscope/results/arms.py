"""The lines of an experiment's summary: the arms and the predictions. Needs the standard library only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

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
    baseline: str | None = None  # the arm that it is compared with; None: it is one itself, or there is none
    loss_scale: str = "none"  # as the setting is written: "none", "1024", "dynamic"
    loss_weight: float = 1.0
    in_fp32: bool = False  # its gradients are FP32: its shares are those that a cast to FP16 would flush
    as_good: bool | None = None  # whether it ends as good as its baseline; None where nobody has compared them

    @property
    def static_scale(self) -> float | None:
        """The loss scale where it stays the same from the first step to the last; None where a scaler moves it."""
        return static_scale(self.loss_scale)


def static_scale(loss_scale: str) -> float | None:
    """The scale of the setting `loss_scale`, 1 for "none"; None where it names a scaler that moves it."""
    if loss_scale == "none":
        return 1.0
    try:
        return float(loss_scale)
    except ValueError:
        return None


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


def read_arms(summary: dict, configs: Mapping[str, dict]) -> tuple[Arm, ...]:
    """The arms of a summary, in its order.

    configs: settings of each arm's first run, for summaries that do not say which loss scale and baseline an arm has.
    """
    facts = {line["arm"]: _own_facts(line, configs.get(line["arm"], {})) for line in summary["arms"]}
    for name, own in facts.items():
        own.setdefault("baseline", _baseline(name, facts, configs))
    return tuple(_read_arm(line, facts[line["arm"]]) for line in summary["arms"])


def _own_facts(line: dict, config: dict) -> dict[str, Any]:
    """The summary's word, or the settings' where it has none."""
    of_settings = {
        "loss_scale": str(config.get("loss_scale", "none")),
        "loss_weight": config.get("loss_weight", 1.0),
        "in_fp32": str(config.get("activation_gradient", config.get("policy", ""))).startswith("fp32"),
    }
    of_summary: dict[str, Any] = {key: line[key] for key in (*of_settings, "baseline", "as_good") if key in line}
    return {**of_settings, **of_summary}


def _baseline(name: str, facts: Mapping[str, dict[str, Any]], configs: Mapping[str, dict]) -> str | None:
    """FP32 arm of the model of an arm in FP16: the one with the same weight of the loss, else the first."""
    if facts[name]["in_fp32"] or name not in configs:
        return None
    model = configs[name].get("model")
    same = [other for other in facts if facts[other]["in_fp32"] and configs.get(other, {}).get("model") == model]
    of_weight = [other for other in same if facts[other]["loss_weight"] == facts[name]["loss_weight"]]
    return next(iter([*of_weight, *same]), None)


def _read_arm(line: dict, facts: dict[str, Any]) -> Arm:
    newer: dict[str, Any] = {key: line.get(key) for key in _NEWER_ARM_KEYS}
    return Arm(
        name=line["arm"],
        seeds=line["seeds"],
        mean=line["mean"],
        low=line["low"],
        high=line["high"],
        diverged=line["diverged"],
        values=tuple(line["values"]),
        lost_updates=line["lost_updates"],
        **newer,
        **facts,
    )
