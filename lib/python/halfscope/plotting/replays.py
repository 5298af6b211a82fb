"""Loss scales over the steps of training: of scalers that were replayed side by side, and of an experiment's arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from halfscope.plotting.style import COLOURS, headline, legend_beside, line_style, new_figure, tidy
from halfscope.results import Experiment, Run

if TYPE_CHECKING:
    from halfscope.replays import Replay, ScalerRun

PANELS_PER_ROW = 3


class Course(NamedTuple):
    """The scale of one scaler over the steps: log2, until it ended, and at which of them it met an overflow."""

    name: str
    label: str
    steps: np.ndarray
    scale_log2: np.ndarray
    overflows: np.ndarray


def replayed_scales(replay: Replay) -> Figure:
    """log2 of every scaler's scale over the steps; crosses: steps that overflow, at the scale that they had."""
    figure = _draw([_course_of_scaler(replay, run) for run in replay.runs])
    note = "Crosses: steps that overflow. The gradients are taken to be the recorded ones but for their scale."
    headline(figure, f"Loss scales over {len(replay.steps)} recorded steps", note)
    return figure


def moving_scales(experiment: Experiment) -> Figure | None:
    """log2 of the loss scale of every arm whose scale moves (of its first seed); crosses: skipped steps.

    None where no arm's scale moves.
    """
    moving = {arm: runs[0] for arm, runs in experiment.runs.items() if runs and runs[0].steps["scale"].nunique() > 1}
    if not moving:
        return None
    figure = _draw([_course_of_arm(arm, run) for arm, run in moving.items()])
    note = "Crosses: steps that were skipped. Each arm has its first seed."
    headline(figure, "Loss scales that move while training", note)
    return figure


def _course_of_scaler(replay: Replay, run: ScalerRun) -> Course:
    steps = np.array(replay.steps[: len(run.scale_log2)])
    label = run.label if run.stopped is None else f"{run.label}\n(ends the run)"
    return Course(run.label, label, steps, np.array(run.scale_log2), np.isin(steps, run.overflow_steps))


def _course_of_arm(arm: str, run: Run) -> Course:
    steps = run.steps
    return Course(arm, arm, steps.index.to_numpy(), np.log2(steps["scale"].to_numpy()), steps["skipped"].to_numpy())


def _draw(courses: Sequence[Course]) -> Figure:
    """One pair of axes, or many small ones: more lines than colours cannot be told apart."""
    if len(courses) > len(COLOURS):
        return _side_by_side(courses)
    figure = new_figure()
    axes = figure.subplots()
    axes.set(xlabel="step", ylabel="log2 of the loss scale")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)
    for place, course in enumerate(courses):
        _draw_course(axes, course, {**line_style(place), "label": course.label})
    legend_beside(figure)
    return figure


def _side_by_side(courses: Sequence[Course]) -> Figure:
    """A panel for each, the others in grey behind it."""
    rows = -(-len(courses) // PANELS_PER_ROW)
    figure = new_figure(height=0.9 + 1.35 * rows)
    panels = figure.subplots(rows, PANELS_PER_ROW, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(courses) :]:
        axes.set_visible(False)
    for axes, course in zip(panels.flat, courses):
        for other in courses:
            axes.step(other.steps, other.scale_log2, where="post", linewidth=0.6, color="#d0d0d0")
        _draw_course(axes, course, {"color": COLOURS[1], "linestyle": "-", "label": course.name})
        tidy(axes)
        axes.set_title(course.label, loc="left", fontsize=8)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    for axes in panels.flat[max(len(courses) - PANELS_PER_ROW, 0) : len(courses)]:  # the lowest of each column
        axes.set_xlabel("step")
        axes.tick_params(labelbottom=True)
    figure.supylabel("log2 of the loss scale", size=10)
    return figure


def _draw_course(axes: Axes, course: Course, look: dict) -> None:
    """A scale holds from its step to the next."""
    marker = "o" if len(course.steps) == 1 else None
    axes.step(course.steps, course.scale_log2, where="post", linewidth=1.6, marker=marker, **look)
    if course.overflows.any():
        steps, heights = course.steps[course.overflows], course.scale_log2[course.overflows]
        axes.plot(steps, heights, "x", color=look["color"], markersize=6, markeredgewidth=1.6)
