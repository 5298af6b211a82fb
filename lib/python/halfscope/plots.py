"""All figures: those that compare arms take an experiment, the others what `halfscope.analyze` and `replay` return."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.curve_plot import drawn, loss_curves, metric_curves
from halfscope.dot_plot import dot_errors, dot_errors_by_length
from halfscope.gradient_plot import gradient_histogram, value_histogram
from halfscope.heatmap_plot import flushed_map
from halfscope.prediction_plot import predicted_and_counted
from halfscope.ratio_plot import ratio_histogram, update_ratio_histogram
from halfscope.replay_plot import replayed_scales, moving_scales
from halfscope.results import Arm, Experiment, JudgedArms, Run
from halfscope.scale_plot import scale_curve, scale_window
from halfscope.scaled_gradient_plot import scaled_gradient_histogram
from halfscope.style import FEW, arm_style, legend_beside, new_figure, tidy
from halfscope.window_plot import scale_windows

__all__ = [
    "dot_errors",
    "dot_errors_by_length",
    "flushed_map",
    "gradient_histogram",
    "loss_curves",
    "lost_updates",
    "metric_curves",
    "predicted_and_counted",
    "ratio_histogram",
    "replayed_scales",
    "scale_curve",
    "moving_scales",
    "scale_window",
    "scale_windows",
    "scaled_gradient_histogram",
    "scoreboard",
    "update_ratio_histogram",
    "value_histogram",
]


def scoreboard(experiment: Experiment) -> Figure:
    """The metric of every arm: a point per seed, the mean and its 95 % interval. Many arms stand closer together.

    An experiment whose metric is named "ONE / OTHER" judges each of its models by one: each has axes of its own.
    """
    many = len(experiment.arms) > FEW
    panels = experiment.metrics
    figure = new_figure(height=0.9 + (0.3 if many else 0.5) * len(experiment.arms) + 0.6 * (len(panels) - 1))
    heights = [len(panel.arms) for panel in panels]
    all_axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for axes, panel in zip(all_axes, panels):
        _draw_scores(axes, experiment, panel, many)
    tidy(all_axes[0], "Result: seeds (dots), mean (diamond), 95 % interval (bar)")
    for axes in all_axes:
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    return figure


def _draw_scores(axes: Axes, experiment: Experiment, panel: JudgedArms, many: bool) -> None:
    names = [arm.name for arm in experiment.arms]
    for place, arm in enumerate(panel.arms):
        _draw_score(axes, place, arm, arm_style(names, arm.name)["color"])
        if arm.mean is not None:
            look = {"size": 7} if many else {}
            label, above = f"{arm.mean:.{panel.digits}f}", (0, 5 if many else 7)
            axes.annotate(label, (arm.mean, place), above, textcoords="offset points", ha="center", **look)
    axes.set_yticks(range(len(panel.arms)), [_score_label(arm, " " if many else "\n") for arm in panel.arms])
    axes.set_ylim(len(panel.arms) - 0.4, -0.6)
    axes.margins(x=0.12)
    better = "  (\N{LEFTWARDS ARROW} lower is better)" if experiment.lower_is_better else ""
    axes.set_xlabel(panel.label + better)
    tidy(axes)


def lost_updates(experiment: Experiment) -> Figure:
    """Share of the non-zero weight updates that FP16 weights lose, over steps; mean over seeds."""
    figure = new_figure()
    axes = figure.subplots()
    for arm, runs in drawn(experiment).items():
        shares = [share for run in runs if len(share := _lost_share(run))]
        if shares:
            mean = 100 * pd.concat(shares, axis=1).mean(axis=1)
            marker = "o" if len(mean) == 1 else None  # a run that broke down at once still shows
            axes.plot(mean, label=arm, linewidth=1.6, marker=marker, **arm_style(list(experiment.runs), arm))
    axes.set(xlabel="step", ylabel="share of non-zero updates (%)", ylim=(0, 100))
    tidy(axes, "Updates lost in FP16\n(arms with a master copy: what would be lost without it)")
    legend_beside(figure)
    return figure


def _draw_score(axes: Axes, place: int, arm: Arm, colour: str) -> None:
    values = [value for value in arm.values if value is not None]
    axes.plot(values, [place] * len(values), "o", color=colour, alpha=0.45, markersize=5, markeredgewidth=0)
    if arm.mean is not None:
        if arm.low is not None and arm.high is not None:
            axes.plot([arm.low, arm.high], [place, place], "|-", color=colour, linewidth=1.4, markersize=9)
        axes.plot(arm.mean, place, "D", color=colour, markersize=6)


def _score_label(arm: Arm, gap: str) -> str:
    return f"{arm.name}{gap}({arm.diverged} of {arm.seeds} diverged)" if arm.diverged else arm.name


def _lost_share(run: Run) -> pd.Series:
    """Lost of the non-zero updates, all tensors together, per observed step."""
    updates = run.counters("updates")
    if updates.empty:
        return pd.Series(dtype=float)
    per_step = updates.groupby("step")[["lost", "nonzero"]].sum()
    return per_step["lost"] / per_step["nonzero"].where(per_step["nonzero"] > 0)
