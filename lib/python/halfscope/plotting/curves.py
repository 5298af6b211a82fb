"""Curves over the steps of training, a line per arm: the loss, and the metric if it was evaluated on the way."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from halfscope.plotting.style import arm_style, arms_by_scale, legend_beside, new_figure, scale_colours, tidy
from halfscope.results import Experiment, Run


def loss_curves(experiment: Experiment) -> Figure | None:
    """Training loss over steps: mean over seeds, smoothed, over the pale raw curves of the seeds; x: breakdowns.

    Packed records have means over windows of steps. None where no losses are recorded.
    """
    if not all(len(losses_of(run)) for runs in experiment.runs.values() for run in runs):
        return None
    figure = new_figure()
    axes = figure.subplots()
    window = _smoothing_window(experiment)
    for arm, runs in drawn(experiment).items():
        style = arm_style(experiment.arms, arm)
        for run in runs:
            axes.plot(losses_of(run), color=style["color"], alpha=0.15, linewidth=0.5)
        mean = pd.concat(list(map(losses_of, runs)), axis=1).mean(axis=1)
        smooth = mean.rolling(window, center=True, min_periods=1).mean().where(mean.notna())
        axes.plot(smooth, label=_label(experiment, arm, _loss_label(arm, runs)), linewidth=1.6, **style)
    _limit_loss(axes, experiment)
    if _fall_by_decades(experiment):
        axes.set_yscale("log")
        axes.set_ylim(0.5 * min(losses_of(run).min() for runs in drawn(experiment).values() for run in runs))
    for arm, runs in drawn(experiment).items():
        _mark_breakdowns(axes, runs, arm_style(experiment.arms, arm)["color"])
    axes.set_xlabel("step")
    axes.set_ylabel("loss" if window == 1 else f"loss (bold: mean over seeds and {window} steps)")
    tidy(axes, "Training loss")
    _explain(figure, axes, experiment)
    return figure


def metric_curves(experiment: Experiment) -> Figure | None:
    """The metric over steps: mean over seeds, over the pale curves of the seeds; perplexities on a logarithmic axis.

    None where no arm was evaluated more than once, or what was evaluated is not what the experiment compares: a
    network's own metric may be the accuracy, where the arms are compared by their training loss.
    """
    if not _evaluates_what_it_compares(experiment):
        return None
    curves = {arm: [run.steps["metric"].dropna() for run in runs] for arm, runs in drawn(experiment).items()}
    if max((len(curve) for arm in curves.values() for curve in arm), default=0) < 2:
        return None
    figure = new_figure()
    axes = figure.subplots()
    for arm, seeds in curves.items():
        style = arm_style(experiment.arms, arm)
        for curve in seeds:
            axes.plot(curve, color=style["color"], alpha=0.25, linewidth=0.6)
        mean = pd.concat(seeds, axis=1).mean(axis=1)
        marker = "o" if len(mean) < 20 else None
        axes.plot(mean, label=_label(experiment, arm, arm), linewidth=1.6, marker=marker, markersize=3, **style)
    if "perplexity" in experiment.summary["metric"]:
        _logarithmic(axes)
    axes.set_xlabel("step")
    axes.set_ylabel(experiment.metric_label + (", lower is better" if experiment.lower_is_better else ""))
    metric = experiment.summary["metric"]
    tidy(axes, f"{metric[:1].upper()}{metric[1:]} during training (pale: each seed)")
    _explain(figure, axes, experiment)
    return figure


def drawn(experiment: Experiment) -> dict[str, list[Run]]:
    """The arms that have finished runs."""
    return {arm: runs for arm, runs in experiment.runs.items() if runs}


def losses_of(run: Run) -> pd.Series:
    """The loss by step; of a packed run the mean over windows of steps."""
    return run.steps["loss"] if len(run.steps) > 1 else run.loss_curve


def has_steps(experiment: Experiment) -> bool:
    """Whether the steps of every run are recorded; packed records leave them out."""
    return all(len(run.steps) for runs in experiment.runs.values() for run in runs)


def _evaluates_what_it_compares(experiment: Experiment) -> bool:
    """Whether the last evaluation of every run is its result: the step records do not say what their metric is."""
    for arm in experiment.arms:
        values = [value for value in arm.values if value is not None]
        ends = [run.summary["metric"] for run in experiment.runs[arm.name] if run.diverged_step is None]
        if not all(any(np.isclose(end, value) for value in values) for end in ends if end is not None):
            return False
    return True


def _label(experiment: Experiment, arm: str, label: str) -> str | None:
    """No label for arms that a colour bar explains."""
    return None if scale_colours(experiment.arms) and arm in arms_by_scale(experiment.arms) else label


def _explain(figure: Figure, axes: Axes, experiment: Experiment) -> None:
    """Meaning of the colours: a legend, and a colour bar where there are many static scales."""
    scales = scale_colours(experiment.arms)
    if scales:
        figure.colorbar(scales, ax=axes, pad=0.02, label="log2 of the static loss scale").outline.set_visible(False)
    legend_beside(figure)


def _logarithmic(axes: Axes) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _smoothing_window(experiment: Experiment) -> int:
    """A fiftieth of the longest run: enough to see the trend through the noise of small batches."""
    return max((len(run.steps) for runs in experiment.runs.values() for run in runs), default=0) // 50 or 1


def _loss_label(arm: str, runs: list[Run]) -> str:
    steps = sorted({run.diverged_step for run in runs if run.diverged_step is not None})
    return f"{arm}\ndiverged at step {', '.join(map(str, steps))}" if steps else arm


def _limit_loss(axes: Axes, experiment: Experiment) -> None:
    """Fits the axis to the runs that learn, so that a loss of thousands before a breakdown does not flatten them."""
    runs = [run for runs in experiment.runs.values() for run in runs]
    steady = [run for run in runs if run.diverged_step is None and not _blows_up(run)] or runs
    top = max((losses_of(run).max() for run in steady), default=1.0)
    axes.set_ylim(0, 1.05 * top if np.isfinite(top) else None)


def _fall_by_decades(experiment: Experiment) -> bool:
    """Whether a loss ends so far below its start that a linear axis would not tell the arms apart."""
    curves = [losses_of(run).dropna() for runs in experiment.runs.values() for run in runs]
    return any(len(curve) > 1 and 0 < curve.iloc[-1] < 1e-3 * curve.iloc[0] for curve in curves)


def _blows_up(run: Run) -> bool:
    """Whether the loss ends far above its start."""
    finite = losses_of(run).dropna()
    return len(finite) > 0 and bool(finite.iloc[-1] > 1.5 * finite.iloc[0])


def _mark_breakdowns(axes: Axes, runs: list[Run], colour: str) -> None:
    top = axes.get_ylim()[1]
    for run in runs:
        if run.diverged_step is not None:
            finite = losses_of(run).dropna()
            height = min(finite.iloc[-1] if len(finite) else top, 0.98 * top)
            axes.plot(run.diverged_step, height, "x", color=colour, markersize=8, markeredgewidth=2)
