"""Arms that differ in the weight of their loss: what they lose to FP32, and what they flush."""

from __future__ import annotations

from typing import NamedTuple

from halfscope.results import Experiment
from halfscope.results.loss_scales import counted, in_fp32

SETTINGS_OF_A_SERIES = 3  # weights of the loss that make a curve


class WeightedArm(NamedTuple):
    """An FP16 arm beside the FP32 arm of its model."""

    weight: float
    behind: float | None  # in the metric's unit, of the means; None where one of both diverged
    flushed: float | None  # share of the non-zero activation gradients, over all observed steps and seeds


def by_loss_weight(experiment: Experiment) -> dict[tuple[str, str], list[WeightedArm]]:
    """The FP16 arms of each model and loss scale, as its setting is written, from the largest weight down.

    Empty unless a model with an FP32 arm has FP16 arms at three weights or more. A model's FP32 arm of the same weight
    counts, or where there is none its first.
    """
    arms = {arm.name: arm for arm in experiment.arms}
    configs = {name: runs[0].config for name, runs in experiment.runs.items() if runs and name in arms}
    series: dict[tuple[str, str], list[WeightedArm]] = {}
    for name, config in configs.items():
        base = _baseline(experiment, configs, config)
        if base is None or in_fp32(experiment, name):
            continue
        ours, theirs = arms[name].mean, arms[base].mean
        behind = None if ours is None or theirs is None else theirs - ours
        if behind is not None and experiment.lower_is_better:
            behind = -behind
        shares = counted(experiment, name, "activation_gradient")
        arm = WeightedArm(config.get("loss_weight", 1.0), behind, shares["flushed"] if shares else None)
        series.setdefault((str(config.get("model", "")), str(config.get("loss_scale", "none"))), []).append(arm)
    weights = {arm.weight for found in series.values() for arm in found}
    if len(weights) < SETTINGS_OF_A_SERIES:
        return {}
    return {key: sorted(found, reverse=True, key=lambda arm: arm.weight) for key, found in series.items()}


def _baseline(experiment: Experiment, configs: dict[str, dict], config: dict) -> str | None:
    same = [
        name
        for name, other in configs.items()
        if in_fp32(experiment, name) and other.get("model") == config.get("model")
    ]
    of_weight = [name for name in same if configs[name].get("loss_weight") == config.get("loss_weight")]
    return next(iter([*of_weight, *same]), None)
