"""Outlier channels of a model's operands: errors of the other channels with them, without them, and by scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from halfscope.plotting.style import BLUE, COLOURS, GREY, RED, headline, legend_beside, new_figure, tidy

if TYPE_CHECKING:
    from halfscope.torch import OutlierChannels

ROWS = 12
MARKS = {  # columns of the table: words, and look
    "others": ("other channels", {"marker": "o", "color": RED, "s": 34, "zorder": 3}),
    "without": ("without the outliers", {"marker": "o", "color": BLUE, "s": 34, "zorder": 3}),
    "whole": ("whole operand", {"marker": "x", "color": "black", "s": 30, "zorder": 4}),
    "row": ("a scale per row", {"marker": "|", "color": COLOURS[3], "s": 60}),
    "block": ("per block of 32", {"marker": "d", "color": COLOURS[4], "s": 22}),
    "tensor": ("per tensor", {"marker": "s", "color": COLOURS[5], "s": 22}),
}


def channel_costs(found: OutlierChannels) -> Figure:
    """Errors of a format in each operand (rows, the largest cost first), norms over the operand's, on a log axis.

    Raises ValueError where no error is above zero.
    """
    table = found.to_pandas()
    shown = table.iloc[:ROWS]
    errors = shown[list(MARKS)].where(lambda each: np.isfinite(each) & (each > 0))
    if errors.isna().all(axis=None):
        raise ValueError(f"channel_costs: {found.format} makes no error in an operand")
    figure = new_figure(width=9.0, height=max(1.9 + 0.26 * len(shown), 3.2))
    axes = figure.subplots()
    places = np.arange(len(shown))
    axes.hlines(places, errors["without"], errors["others"], color=GREY, linewidth=1.2, zorder=1)
    for name, (words, look) in MARKS.items():
        if errors[name].notna().any():
            axes.scatter(errors[name], places, label=words, **look)
    axes.set_xscale("log")
    axes.set_xlim(*_decades(errors))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlabel("norm of the error over the operand's")
    _name_rows(axes, shown)
    tidy(axes)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    legend_beside(figure)
    rest = len(table) - len(shown)
    headline(figure, f"Cost of outlier channels for the others in {found.format}", _note(rest))
    return figure


def _decades(errors: pd.DataFrame) -> tuple[float, float]:
    """Limits a little beyond whole decades, so that two of their marks have a number."""
    least, most = np.log10([errors.min(axis=None), errors.max(axis=None)])
    low = math.floor(least)
    return 0.9 * 10.0**low, 1.1 * 10.0 ** max(math.ceil(most), low + 1)


def _name_rows(axes: Axes, shown: pd.DataFrame) -> None:
    names = [
        f"{operand}, channel {row['channel']}: {row['ratio']:.3g}\N{MULTIPLICATION SIGN}"
        for operand, row in shown.iterrows()
    ]
    axes.set_yticks(range(len(names)), names, size=8)
    for label, stands_out in zip(axes.get_yticklabels(), shown["stands_out"]):
        label.set_fontweight("bold" if stands_out else "normal")


def _note(rest: int) -> str:
    words = "Largest channel, its maximum over the median channel's. Bold: stands out."
    return f"{words} {rest} operands with less are left out." if rest else words
