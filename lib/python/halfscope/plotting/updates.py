"""Weight updates: their size beside their weights, and the share that weights of a format lose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.formats import describe, label
from halfscope.plotting.curves import drawn
from halfscope.plotting.style import AMBER, COLOURS, GREY, RED, arm_style, legend_beside, new_figure, signed, tidy
from halfscope.results import Experiment, RecordedHistogram, Run

if TYPE_CHECKING:
    from halfscope import Histogram

RATIO_RANGE = (-40, 10)  # log2 |dw/w|


def update_ratio_histogram(experiment: Experiment) -> Figure:
    """How large updates are beside their weights: share of the non-zero finite |dw/w| per binade."""
    figure, axes = _ratio_axes("Size of updates beside their weights")
    for arm in experiment.runs:
        look = {"label": arm, **arm_style(experiment.arms, arm)}
        _draw_ratios(axes, experiment.histogram(arm, "update_ratio"), look)
    _draw_loss_bounds(axes, _format_of(experiment))
    legend_beside(figure)
    return figure


def ratio_histogram(histogram: Histogram | RecordedHistogram, title: str = "") -> Figure:
    """One histogram of |dw/w|, such as halfscope.update_ratios counts."""
    if not isinstance(histogram, RecordedHistogram):
        histogram = RecordedHistogram.of(histogram)
    figure, axes = _ratio_axes(title)
    _draw_ratios(axes, histogram, {"color": COLOURS[1], "fill": True, "alpha": 0.8})
    _draw_loss_bounds(axes, histogram.format)
    return figure


def lost_updates(experiment: Experiment) -> Figure:
    """Share of the non-zero weight updates that weights of the format lose, over steps; mean over seeds."""
    figure = new_figure()
    axes = figure.subplots()
    for arm, runs in drawn(experiment).items():
        shares = [share for run in runs if len(share := _lost_share(run))]
        if shares:
            mean = 100 * pd.concat(shares, axis=1).mean(axis=1)
            marker = "o" if len(mean) == 1 else None  # a run that broke down at once still shows
            axes.plot(mean, label=arm, linewidth=1.6, marker=marker, **arm_style(experiment.arms, arm))
    axes.set(xlabel="step", ylabel="share of non-zero updates (%)", ylim=(0, 100))
    tidy(
        axes,
        f"Updates lost in {label(_format_of(experiment))}\n(arms with a master copy: what would be lost without it)",
    )
    legend_beside(figure)
    return figure


def _ratio_axes(title: str) -> tuple[Figure, Axes]:
    figure = new_figure()
    axes = figure.subplots()
    axes.set(xlim=RATIO_RANGE, ylabel="share of non-zero updates (%)", xlabel="log2 |update / weight|")
    low, high = RATIO_RANGE  # the outermost bars also hold what lies beyond them
    inner = range(low + 10, high, 10)
    axes.set_xticks([low, *inner, high], [f"≤ {signed(low)}", *map(signed, inner), f"≥ {signed(high)}"])
    tidy(axes, title)
    return figure, axes


def _draw_ratios(axes: Axes, histogram: RecordedHistogram, look: dict) -> None:
    low, high = RATIO_RANGE
    counts = histogram.within(low, high - 1)
    if counts.sum():
        axes.stairs(100 * counts / counts.sum(), np.arange(low, high + 1), linewidth=1.6, **look)


def _format_of(experiment: Experiment) -> str:
    return experiment.format_of(next((arm for arm, runs in experiment.runs.items() if runs), ""))


def _draw_loss_bounds(axes: Axes, format: str) -> None:
    """Shades where updates are lost and labels the bounds, above the highest bar.

    Below 2^-12 of its weight an update never survives rounding to FP16; above 2^-11 it always changes something.
    """
    maybe_lost = -1 - describe(format)["mantissa_bits"]
    always_lost = maybe_lost - 1
    top = axes.get_ylim()[1]
    axes.set_ylim(0, 1.2 * top)
    axes.axvspan(RATIO_RANGE[0], always_lost, color=RED, alpha=0.12, linewidth=0, zorder=0)
    axes.axvspan(always_lost, maybe_lost, color=AMBER, alpha=0.25, linewidth=0, zorder=0)
    for bound in (always_lost, maybe_lost):
        axes.axvline(bound, color=GREY, linewidth=1, linestyle=":")
    axes.text(always_lost - 0.4, 1.12 * top, "always lost", ha="right", va="center")
    axes.text(maybe_lost + 0.4, 1.12 * top, "\N{LEFTWARDS ARROW} may be lost", ha="left", va="center")


def _lost_share(run: Run) -> pd.Series:
    """Lost of the non-zero updates, all tensors together, per observed step."""
    updates = run.counters("updates")
    if updates.empty:
        return pd.Series(dtype=float)
    per_step = updates.groupby("step")[["lost", "nonzero"]].sum()
    return per_step["lost"] / per_step["nonzero"].where(per_step["nonzero"] > 0)
