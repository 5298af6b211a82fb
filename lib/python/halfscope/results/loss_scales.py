"""Loss scales in the results of an experiment: arms to compare, counted shares, usable scales."""

from __future__ import annotations

from math import log2

import pandas as pd

from halfscope import Histogram, ScaleAdvice, advise_scale
from halfscope.results import Arm, Experiment
from halfscope.results.histogram import RecordedHistogram

GRADIENTS = ("activation_gradient", "weight_gradient")
OF_OUTPUT = " (output)"  # behind the name of a layer, in an advice: the gradient of what the layer returns
OUTCOMES = ("flushed", "subnormal", "overflow")
OF_A_SCALE = ("arm", "seed", "loss_scale", "initial_scale")  # always different in arms at two scales


def baseline(experiment: Experiment) -> str | None:
    """The FP32 arm that predictions are made from: of several the one with the smallest gradients, then the first."""
    arms = [arm for arm in experiment.arms if arm.in_fp32 and experiment.runs[arm.name]]
    smallest = min(arms, key=lambda arm: arm.loss_weight, default=None)
    return smallest.name if smallest else None


def static_scales(experiment: Experiment) -> dict[str, float]:
    """The FP16 arms with a static loss scale that train what the baseline trains, by scale; one for each scale."""
    found: dict[float, str] = {}
    for arm, scale in _static_arms(experiment):
        found.setdefault(scale, arm.name)
    return {found[scale]: scale for scale in sorted(found)}


def _static_arms(experiment: Experiment) -> list[tuple[Arm, float]]:
    """The FP16 arms with a run that train what the baseline trains, at a static loss scale."""
    base = baseline(experiment)
    return [
        (arm, scale)
        for arm in experiment.arms
        if experiment.runs[arm.name] and not arm.in_fp32 and (base is None or same_task(experiment, arm.name, base))
        if (scale := arm.static_scale) is not None and scale > 0
    ]


def scale_series(experiment: Experiment) -> dict[str, dict[str, float]]:
    """The FP16 arms with a static loss scale in groups that differ in the scale alone, each by scale.

    Keys are the settings in which the groups differ, "learning_rate=0.001", or "" where there is one group.
    """
    arms = [
        (arm.name, scale, {key: value for key, value in _config(experiment, arm.name).items() if key not in OF_A_SCALE})
        for arm, scale in _static_arms(experiment)
    ]
    varied = [key for key in (arms[0][2] if arms else ()) if len({str(config.get(key)) for *_, config in arms}) > 1]
    series: dict[str, dict[str, float]] = {}
    for arm, scale, config in sorted(arms, key=lambda entry: entry[1]):
        name = ", ".join(f"{key}={config.get(key)}" for key in varied)
        group = series.setdefault(name, {})
        if scale not in group.values():
            group[arm] = scale
    return series


def compares_scales(experiment: Experiment) -> bool:
    """Whether the loss scale is what the experiment is about: FP16 gradients at scale 1 or at several scales."""
    scales = set(static_scales(experiment).values())
    return 1.0 in scales or len(scales) > 1


def good_arm(experiment: Experiment) -> str | None:
    """The arm to show beside S = 1: the smallest static scale that is as good as FP32, the largest where S = 1 is too.

    None where the summary does not say which arms are as good.
    """
    as_good = {arm: scale for arm, scale in static_scales(experiment).items() if experiment.arm(arm).as_good}
    good = [arm for arm, scale in as_good.items() if scale > 1]
    unscaled_does = 1 in as_good.values()
    return (good[-1] if unscaled_does else good[0]) if good else None


def shown_scale(experiment: Experiment) -> int | None:
    """log2 of the loss scale to show: the good arm's, or the largest at which nothing of the baseline overflows."""
    arm = good_arm(experiment)
    if arm is not None:
        return round(log2(static_scales(experiment)[arm]))
    found = advice(experiment, baseline(experiment))
    return found.overflow_beyond_log2 if found else None


def gradients(experiment: Experiment, arm: str | None) -> dict[str, RecordedHistogram]:
    """The gradients of `arm` by role, over all layers, steps and seeds; roles without a non-zero one are absent."""
    found = {role: experiment.histogram(arm, role) for role in GRADIENTS} if arm else {}
    return {role: histogram for role, histogram in found.items() if histogram.counts.sum()}


def advice(experiment: Experiment, arm: str | None) -> ScaleAdvice | None:
    """`halfscope.advise_scale` of the gradients of `arm`: per tensor, over all observed steps and seeds.

    None where no arm is given and where it has no histogram.
    """
    steps: dict[str, list[Histogram]] = {}

    def add(_step: int, role: str, tensor: str, scale_log2: int, histogram: Histogram) -> None:
        if role in GRADIENTS:
            unscaled = histogram.scaled(2.0**-scale_log2) if scale_log2 else histogram
            steps.setdefault(gradient_name(role, tensor), []).append(unscaled)

    for run in experiment.runs.get(arm or "", ()):
        run.each_histogram(add)
    return advise_scale(steps, format=experiment.format_of(arm or "")) if steps else None


def gradient_name(role: str, tensor: str) -> str:
    """Name in an advice: "fc (output)" for the gradient of a layer's output, "fc.weight" for that of its weights."""
    return f"{tensor or 'the model'}{OF_OUTPUT}" if role == "activation_gradient" else tensor


def counted(experiment: Experiment, arm: str, role: str | None = None) -> dict[str, float] | None:
    """Shares of the non-zero gradient elements of `arm` by outcome, as counted in all observed steps and seeds.

    The gradients are of one role, or of both together; None where nothing was counted.
    """
    frame = counters(experiment, arm)
    frame = frame if role is None or frame.empty else frame[frame["role"] == role]
    nonzero = 0 if frame.empty else frame["nonzero"].sum()
    return {outcome: frame[outcome].sum() / nonzero for outcome in OUTCOMES} if nonzero else None


def counters(experiment: Experiment, arm: str) -> pd.DataFrame:
    """The tensor counters of both gradient roles over all seeds of `arm`, with the finite `nonzero` elements."""
    frames = [frame for run in experiment.runs[arm] if not (frame := run.counters("tensors")).empty]
    if not frames:
        return pd.DataFrame()
    frame = pd.concat(frames, ignore_index=True)
    frame["nonzero"] = frame["elements"] - frame["zeros"] - frame["nonfinite"]
    return frame[frame["role"].isin(GRADIENTS)]


def same_task(experiment: Experiment, arm: str, other: str) -> bool:
    """Whether both arms, which have runs, train one model on one data set with one weight of the loss."""
    one, two = (_config(experiment, name) for name in (arm, other))
    return experiment.arm(arm).loss_weight == experiment.arm(other).loss_weight and all(
        one.get(key) == two.get(key) for key in ("model", "dataset")
    )


def _config(experiment: Experiment, arm: str) -> dict:
    return experiment.runs[arm][0].config
