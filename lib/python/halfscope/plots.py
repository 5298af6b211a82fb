"""The figures that compare arms: loss curves, scoreboard, lost updates, |dw/w|. Each takes an experiment."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.gradient_plot import gradient_histogram
from halfscope.results import Arm, Experiment, Run
from halfscope.style import AMBER, COLOURS, GREY, RED, arm_style, legend_beside, new_figure, tidy

__all__ = ["gradient_histogram", "loss_curves", "lost_updates", "scoreboard", "update_ratio_histogram"]

# Below 2^-12 of its weight an update never survives rounding to FP16; above 2^-11 it always changes something.
MAYBE_LOST, ALWAYS_LOST = -11, -12
RATIO_RANGE = (-40, 10)  # log2 |dw/w|


def loss_curves(experiment: Experiment) -> Figure:
    """Training loss over steps: mean over seeds, smoothed, over the pale raw curves of the seeds; x: breakdowns."""
    figure = new_figure()
    axes = figure.subplots()
    window = _smoothing_window(experiment)
    for arm, runs in _drawn(experiment).items():
        style = arm_style(list(experiment.runs), arm)
        for run in runs:
            axes.plot(run.steps["loss"], color=style["color"], alpha=0.15, linewidth=0.5)
        mean = pd.concat([run.steps["loss"] for run in runs], axis=1).mean(axis=1)
        smooth = mean.rolling(window, center=True, min_periods=1).mean().where(mean.notna())
        axes.plot(smooth, label=_loss_label(arm, runs), linewidth=1.6, **style)
    _limit_loss(axes, experiment)
    for arm, runs in _drawn(experiment).items():
        _mark_breakdowns(axes, runs, arm_style(list(experiment.runs), arm)["color"])
    axes.set_xlabel("step")
    axes.set_ylabel("loss" if window == 1 else f"loss (bold: mean over seeds and {window} steps)")
    tidy(axes, "Training loss")
    legend_beside(figure)
    return figure


def scoreboard(experiment: Experiment) -> Figure:
    """The metric of every arm: a point per seed, the mean and its 95 % interval."""
    figure = new_figure(height=0.9 + 0.5 * len(experiment.arms))
    axes = figure.subplots()
    for place, arm in enumerate(experiment.arms):
        _draw_score(axes, place, arm, COLOURS[place % len(COLOURS)])
    axes.set_yticks(range(len(experiment.arms)), list(map(_score_label, experiment.arms)))
    axes.set_ylim(len(experiment.arms) - 0.4, -0.6)
    axes.margins(x=0.12)
    axes.set_xlabel(experiment.metric_label)
    tidy(axes, "Result: dots are seeds, the diamond their mean, the bar its 95 % interval")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    return figure


def lost_updates(experiment: Experiment) -> Figure:
    """Share of the non-zero weight updates that FP16 weights lose, over steps; mean over seeds."""
    figure = new_figure()
    axes = figure.subplots()
    for arm, runs in _drawn(experiment).items():
        shares = [share for run in runs if len(share := _lost_share(run))]
        if shares:
            mean = 100 * pd.concat(shares, axis=1).mean(axis=1)
            marker = "o" if len(mean) == 1 else None  # a run that broke down at once still shows
            axes.plot(mean, label=arm, linewidth=1.6, marker=marker, **arm_style(list(experiment.runs), arm))
    axes.set(xlabel="step", ylabel="share of non-zero updates (%)", ylim=(0, 100))
    tidy(axes, "Updates lost in FP16\n(arms with a master copy: what would be lost without it)")
    legend_beside(figure)
    return figure


def update_ratio_histogram(experiment: Experiment) -> Figure:
    """How large updates are beside their weights: share of the non-zero finite |dw/w| per binade."""
    figure = new_figure()
    axes = figure.subplots()
    _draw_ratios(axes, experiment)
    top = axes.get_ylim()[1]
    _draw_loss_bounds(axes, 1.12 * top)
    axes.set(xlim=RATIO_RANGE, ylim=(0, 1.2 * top), ylabel="share of non-zero updates (%)")
    low, high = RATIO_RANGE  # the outermost bars also hold what lies beyond them
    inner = range(low + 10, high, 10)
    axes.set_xticks([low, *inner, high], [f"$\\leq {low}$", *(f"${tick}$" for tick in inner), f"$\\geq {high}$"])
    axes.set_xlabel("log2 |update / weight|")
    tidy(axes, "Size of updates beside their weights")
    legend_beside(figure)
    return figure


def _draw_ratios(axes: Axes, experiment: Experiment) -> None:
    low, high = RATIO_RANGE
    for arm in experiment.runs:
        counts = experiment.histogram(arm, "update_ratio").within(low, high - 1)
        if counts.sum():
            shares = 100 * counts / counts.sum()
            axes.stairs(
                shares, np.arange(low, high + 1), label=arm, linewidth=1.6, **arm_style(list(experiment.runs), arm)
            )


def _draw_loss_bounds(axes: Axes, height: float) -> None:
    """Shades where updates are lost and labels the bounds at `height`, in units of the y axis."""
    axes.axvspan(RATIO_RANGE[0], ALWAYS_LOST, color=RED, alpha=0.12, linewidth=0, zorder=0)
    axes.axvspan(ALWAYS_LOST, MAYBE_LOST, color=AMBER, alpha=0.25, linewidth=0, zorder=0)
    for bound in (ALWAYS_LOST, MAYBE_LOST):
        axes.axvline(bound, color=GREY, linewidth=1, linestyle=":")
    axes.text(ALWAYS_LOST - 0.4, height, "always lost", ha="right", va="center")
    axes.text(MAYBE_LOST + 0.4, height, "\N{LEFTWARDS ARROW} may be lost", ha="left", va="center")


def _drawn(experiment: Experiment) -> dict[str, list[Run]]:
    """The arms that have finished runs."""
    return {arm: runs for arm, runs in experiment.runs.items() if runs}


def _smoothing_window(experiment: Experiment) -> int:
    """A fiftieth of the longest run: enough to see the trend through the noise of small batches."""
    return max((len(run.steps) for runs in experiment.runs.values() for run in runs), default=0) // 50 or 1


def _loss_label(arm: str, runs: list[Run]) -> str:
    steps = sorted({run.diverged_step for run in runs if run.diverged_step is not None})
    return f"{arm}\ndiverged at step {', '.join(map(str, steps))}" if steps else arm


def _limit_loss(axes: Axes, experiment: Experiment) -> None:
    """Fits the axis to the runs that hold, so that a loss of thousands before a breakdown does not flatten them."""
    runs = [run for runs in experiment.runs.values() for run in runs]
    steady = [run for run in runs if run.diverged_step is None] or runs
    top = max((run.steps["loss"].max() for run in steady), default=1.0)
    axes.set_ylim(0, 1.05 * top if np.isfinite(top) else None)


def _mark_breakdowns(axes: Axes, runs: list[Run], colour: str) -> None:
    top = axes.get_ylim()[1]
    for run in runs:
        if run.diverged_step is not None:
            finite = run.steps["loss"].dropna()
            height = min(finite.iloc[-1] if len(finite) else top, 0.98 * top)
            axes.plot(run.diverged_step, height, "x", color=colour, markersize=8, markeredgewidth=2)


def _draw_score(axes: Axes, place: int, arm: Arm, colour: str) -> None:
    values = [value for value in arm.values if value is not None]
    axes.plot(values, [place] * len(values), "o", color=colour, alpha=0.45, markersize=5, markeredgewidth=0)
    if arm.mean is not None:
        if arm.low is not None and arm.high is not None:
            axes.plot([arm.low, arm.high], [place, place], "|-", color=colour, linewidth=1.4, markersize=9)
        axes.plot(arm.mean, place, "D", color=colour, markersize=6)
        axes.annotate(f"{arm.mean:.2f}", (arm.mean, place), (0, 7), textcoords="offset points", ha="center")


def _score_label(arm: Arm) -> str:
    return f"{arm.name}\n({arm.diverged} of {arm.seeds} diverged)" if arm.diverged else arm.name


def _lost_share(run: Run) -> pd.Series:
    """Lost of the non-zero updates, all tensors together, per observed step."""
    updates = run.counters("updates")
    if updates.empty:
        return pd.Series(dtype=float)
    per_step = updates.groupby("step")[["lost", "nonzero"]].sum()
    return per_step["lost"] / per_step["nonzero"].where(per_step["nonzero"] > 0)
