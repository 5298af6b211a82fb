"""Arms that differ in the weight of their loss: what they lose to FP32, and what they flush."""

from __future__ import annotations

from typing import NamedTuple

from halfscope.results import Arm, Experiment
from halfscope.results.loss_scales import counted

SETTINGS_OF_A_SERIES = 3  # weights of the loss that make a curve
NAMED_WEIGHTS = 3  # the names of more weights' arms would fill a page


class WeightedArm(NamedTuple):
    """An FP16 arm beside the FP32 arm of its model."""

    weight: float
    behind: float | None  # in the metric's unit, of the means; None where one of both diverged
    flushed: float | None  # share of the non-zero activation gradients, over all observed steps and seeds


def by_loss_weight(experiment: Experiment) -> dict[tuple[str, str], list[WeightedArm]]:
    """The FP16 arms of each model and loss scale, as its setting is written, from the largest weight down.

    Empty unless FP16 arms that have an FP32 arm as their baseline have three weights or more.
    """
    series: dict[tuple[str, str], list[WeightedArm]] = {}
    for arm in experiment.arms:
        runs, base = experiment.runs[arm.name], _fp32_baseline(experiment, arm)
        if not runs or base is None:
            continue
        shares = counted(experiment, arm.name, "activation_gradient")
        weighted = WeightedArm(arm.loss_weight, _behind(experiment, arm, base), shares["flushed"] if shares else None)
        series.setdefault((str(runs[0].config.get("model", "")), arm.loss_scale), []).append(weighted)
    weights = {arm.weight for found in series.values() for arm in found}
    if len(weights) < SETTINGS_OF_A_SERIES:
        return {}
    return {key: sorted(found, reverse=True, key=lambda arm: arm.weight) for key, found in series.items()}


def weight_text(weight: float) -> str:
    """1/256 rather than 0.00390625."""
    return f"1/{1 / weight:g}" if weight < 1 else f"{weight:g}"


def weight_note(experiment: Experiment) -> str:
    """The constants that the arms' losses are multiplied by, and the arms of a few; empty where there are none."""
    arms: dict[float, list[str]] = {}
    for arm in experiment.arms:
        if experiment.runs.get(arm.name):
            arms.setdefault(arm.loss_weight, []).append(arm.name)
    if len(arms) == 1:
        (weight,) = arms
        return "" if weight == 1 else f"The loss is multiplied by {weight_text(weight)}."
    weighted = {weight: names for weight, names in sorted(arms.items(), reverse=True) if weight != 1}
    if len(weighted) > NAMED_WEIGHTS:
        *before, last = map(weight_text, weighted)
        count, all_arms = sum(map(len, weighted.values())), sum(map(len, arms.values()))
        return f"The loss is multiplied by {', '.join(before)} or {last} in {count} of {all_arms} arms."
    parts = [f"{weight_text(weight)} in {_some(names)}" for weight, names in weighted.items()]
    return f"The loss is multiplied by {'; by '.join(parts)}." if parts else ""


def _some(names: list[str]) -> str:
    """Names: all of up to four, else three and how many more."""
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _fp32_baseline(experiment: Experiment, arm: Arm) -> Arm | None:
    """The baseline of an FP16 arm, where that is in FP32 and has a run."""
    if arm.in_fp32 or arm.baseline is None or not experiment.runs.get(arm.baseline):
        return None
    base = experiment.arm(arm.baseline)
    return base if base.in_fp32 else None


def _behind(experiment: Experiment, arm: Arm, base: Arm) -> float | None:
    if arm.mean is None or base.mean is None:
        return None
    return arm.mean - base.mean if experiment.lower_is_better else base.mean - arm.mean
