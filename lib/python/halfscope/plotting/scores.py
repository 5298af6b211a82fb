"""The results of the arms beside each other: seeds, means and intervals."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.plotting.style import FEW, arm_style, new_figure, tidy
from halfscope.results.arms import Arm, JudgedArms
from halfscope.results.experiment import Experiment


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
    for place, arm in enumerate(panel.arms):
        _draw_score(axes, place, arm, arm_style(experiment.arms, arm.name)["color"])
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


def _draw_score(axes: Axes, place: int, arm: Arm, colour: str) -> None:
    values = [value for value in arm.values if value is not None]
    axes.plot(values, [place] * len(values), "o", color=colour, alpha=0.45, markersize=5, markeredgewidth=0)
    if arm.mean is not None:
        if arm.low is not None and arm.high is not None:
            axes.plot([arm.low, arm.high], [place, place], "|-", color=colour, linewidth=1.4, markersize=9)
        axes.plot(arm.mean, place, "D", color=colour, markersize=6)


def _score_label(arm: Arm, gap: str) -> str:
    return f"{arm.name}{gap}({arm.diverged} of {arm.seeds} diverged)" if arm.diverged else arm.name
