"""Loss scales over the steps of training: of scalers that were replayed side by side, and of an experiment's arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from halfscope.plotting.style import COLOURS, arm_style, headline, legend_beside, new_figure, tidy
from halfscope.results import Experiment, Run

if TYPE_CHECKING:
    from halfscope.replays import Replay, ScalerRun

PANELS_PER_ROW = 3


def replayed_scales(replay: Replay) -> Figure:
    """log2 of every scaler's scale over the steps; crosses: steps that overflow, at the scale that they had."""
    if len(replay.runs) > len(COLOURS):
        figure = _side_by_side(replay)
    else:
        figure, axes = _scale_axes()
        names = [run.scaler for run in replay.runs]
        for run in replay.runs:
            _draw_replay(axes, replay, run, {**arm_style(names, run.scaler), "label": _label(run)})
        legend_beside(figure)
    steps = replay.steps
    note = "Crosses: steps that overflow. The gradients are taken to be the recorded ones but for their scale."
    headline(figure, f"Loss scales over {len(steps)} recorded steps", note)
    return figure


def _side_by_side(replay: Replay) -> Figure:
    """A panel for each scaler, the others in grey behind it: more lines than colours cannot be told apart."""
    rows = -(-len(replay.runs) // PANELS_PER_ROW)
    figure = new_figure(height=0.9 + 1.35 * rows)
    panels = figure.subplots(rows, PANELS_PER_ROW, sharex=True, sharey=True)
    for axes in panels.flat[len(replay.runs) :]:
        axes.set_visible(False)
    for axes, run in zip(panels.flat, replay.runs):
        for other in replay.runs:
            axes.step(_steps_of(replay, other), other.scale_log2, where="post", linewidth=0.6, color="#d0d0d0")
        _draw_replay(axes, replay, run, {"color": COLOURS[1], "linestyle": "-", "label": run.scaler})
        tidy(axes)
        axes.set_title(_label(run), loc="left", fontsize=8)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
    for axes in panels[-1]:
        axes.set_xlabel("step")
    figure.supylabel("log2 of the loss scale", size=10)
    return figure


def _steps_of(replay: Replay, run: ScalerRun) -> np.ndarray:
    return np.array(replay.steps[: len(run.scale_log2)])


def _label(run: ScalerRun) -> str:
    return run.scaler if run.stopped is None else f"{run.scaler}\n(ends the run)"


def _draw_replay(axes: Axes, replay: Replay, run: ScalerRun, look: dict) -> None:
    _draw_scales(axes, _steps_of(replay, run), run.scale_log2, look)
    steps = np.array(replay.steps)
    _mark_overflows(axes, steps, run.scale_log2, np.isin(steps, run.overflow_steps), look)


def moving_scales(experiment: Experiment) -> Figure | None:
    """log2 of the loss scale of every arm whose scale moves (of its first seed); crosses: skipped steps.

    None where no arm's scale moves.
    """
    moving = {arm: runs[0] for arm, runs in experiment.runs.items() if runs and runs[0].steps["scale"].nunique() > 1}
    if not moving:
        return None
    figure, axes = _scale_axes()
    for arm, run in moving.items():
        _draw_arm(axes, run, {**arm_style(list(moving), arm), "label": arm})
    legend_beside(figure)
    note = "Crosses: steps that were skipped. Of each arm, its first seed."
    headline(figure, "Loss scales that move while training", note)
    return figure


def _scale_axes() -> tuple[Figure, Axes]:
    figure = new_figure()
    axes = figure.subplots()
    axes.set(xlabel="step", ylabel="log2 of the loss scale")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    tidy(axes)
    return figure, axes


def _draw_arm(axes: Axes, run: Run, look: dict) -> None:
    steps, scales = run.steps.index.to_numpy(), np.log2(run.steps["scale"].to_numpy())
    _draw_scales(axes, steps, scales, look)
    _mark_overflows(axes, steps, scales, run.steps["skipped"].to_numpy(), look)


def _draw_scales(axes: Axes, steps: np.ndarray, scales: Sequence[float], look: dict) -> None:
    """A scale holds from its step to the next."""
    axes.step(steps, scales, where="post", linewidth=1.6, marker="o" if len(steps) == 1 else None, **look)


def _mark_overflows(axes: Axes, steps: np.ndarray, scales: Sequence[float], where: np.ndarray, look: dict) -> None:
    reached = where[: len(scales)]
    if reached.any():
        heights = np.asarray(scales)[reached]
        axes.plot(steps[: len(scales)][reached], heights, "x", color=look["color"], markersize=6, markeredgewidth=1.6)
