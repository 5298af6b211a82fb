"""Formats of a model's layers: predicted cost as a heat map, and mixtures beside uniform formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from halfscope.plotting.heatmap import COLOURS, name_rows
from halfscope.plotting.style import BLUE, GREY, headline, new_figure, tidy

if TYPE_CHECKING:
    from halfscope.torch import FormatMixture, Sensitivity

MIXTURE = "mixture"
DECADES = 6  # nats further below the largest are as good as none
DARK = 0.6  # share of the colours from which on a number is white
NEAR = 1.15  # ratio of bits below which names above two points would meet
TICKS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32)  # bits
NUMBERED = 24  # rows with a number in each cell


def cost_map(found: Sensitivity) -> Figure:
    """Predicted nats of each unit (rows, the most sensitive first) in each format, the narrowest first.

    Raises ValueError where no format changes a unit's result.
    """
    nats = found.to_pandas()["nats"].unstack("format").reindex(columns=list(found.formats))
    nats = nats.reindex(found.units).pipe(
        lambda each: each.loc[each.max(axis=1).fillna(np.inf).sort_values().index[::-1]]
    )
    top = nats.max(axis=None)
    if not top > 0:
        raise ValueError("cost_map: no format changes a unit's result")
    figure = new_figure(height=min(max(1.6 + 0.24 * len(nats), 2.8), 9.0))
    axes = figure.subplots()
    axes.set_facecolor("#bbbbbb")
    norm = LogNorm(top * 10.0**-DECADES, top, clip=True)
    shown = np.ma.masked_invalid(nats)
    edges = np.arange(nats.shape[1] + 1) - 0.5, np.arange(len(nats) + 1) - 0.5
    mesh = axes.pcolormesh(*edges, shown, cmap=COLOURS, norm=norm, edgecolors="white", linewidth=0.6)
    axes.set_ylim(len(nats) - 0.5, -0.5)
    axes.set_xticks(range(nats.shape[1]), list(nats.columns), size=9)
    axes.xaxis.tick_top()
    name_rows(axes, [name or "the model" for name in nats.index], "", size=8)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(nats) <= NUMBERED:
        _write_numbers(axes, nats, norm)
    bar = figure.colorbar(mesh, ax=axes, pad=0.02, aspect=30)
    bar.set_label("nats per term")
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.outline.set_visible(False)
    note = "Grey: a tensor is not finite in the format." if nats.isna().any(axis=None) else ""
    headline(figure, "Predicted distance from FP32 of each layer alone in each format", note)
    return figure


def _write_numbers(axes: Axes, nats: pd.DataFrame, norm: LogNorm) -> None:
    for row, values in enumerate(nats.to_numpy()):
        for column, value in enumerate(values):
            if np.isfinite(value):
                colour = "white" if norm(value) > DARK else "black"
                axes.text(column, row, f"{value:.1e}", ha="center", va="center", size=7, color=colour)


def frontier(mixtures: Iterable[FormatMixture]) -> Figure:
    """Nats from FP32 against bits per weight: mixtures under several budgets, and uniform formats beside them.

    Whiskers are the 95 % intervals of the trials. Raises ValueError without a mixture.
    """
    trials = [mixture.to_pandas() for mixture in mixtures]
    if not trials:
        raise ValueError("frontier: no mixture; give those of .choose(bits=...) under several budgets")
    every = pd.concat(trials)
    uniform = every.drop(MIXTURE).groupby(level=0, sort=False).first()
    mixed = every.loc[[MIXTURE]].sort_values("bits")
    figure = new_figure(height=3.8)
    axes = figure.subplots()
    for label, points, colour, line in (("mixture", mixed, BLUE, "-"), ("one format for all units", uniform, GREY, "")):
        below, above = points["nats"] - points["low"], points["high"] - points["nats"]
        whiskers = np.clip(np.array([below, above]), 0, None)
        axes.errorbar(points["bits"], points["nats"], whiskers, color=colour, linestyle=line, marker="o", markersize=5,
                      capsize=2, label=label)  # fmt: skip
    _name_formats(axes, uniform.sort_values("bits"))
    axes.set_xscale("log", base=2)
    ticks = [bits for bits in TICKS if every["bits"].min() / NEAR <= bits <= every["bits"].max() * NEAR]
    axes.set_xticks(ticks, [f"{bits}" for bits in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yscale("log")
    axes.set_xlabel("bits per weight, scales included")
    axes.set_ylabel("nats per term from FP32")
    axes.margins(x=0.12, y=0.12)
    tidy(axes)
    axes.legend(frameon=False, loc="upper right")
    headline(figure, "Mixtures of formats beside one format for all layers")
    return figure


def _name_formats(axes: Axes, uniform: pd.DataFrame) -> None:
    """Names above their points, but at the right of a point beside one of about as many bits."""
    before = 0.0
    for name, point in uniform.iterrows():
        look = {"xytext": (0, 7), "ha": "center"}
        if point["bits"] < NEAR * before:
            look = {"xytext": (8, 0), "ha": "left", "va": "center"}
        before = point["bits"]
        at = (point["bits"], point["nats"])
        axes.annotate(str(name), at, textcoords="offset points", size=8, color=GREY, **look)
