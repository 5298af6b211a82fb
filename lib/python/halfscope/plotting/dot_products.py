"""Errors of dot products, by their number of terms and on the generations of tensor cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.plotting.style import BLUE, GREY, headline, legend_beside, line_style, new_figure, tidy

if TYPE_CHECKING:
    import pandas as pd

EXACT = 2.0**-26  # where an error of none is drawn: below half a unit of FP32's last place


def dot_errors_by_length(errors: pd.DataFrame) -> Figure:
    """The frame of dot_products.errors_by_length: both axes log2."""
    figure = new_figure()
    axes = figure.subplots()
    terms = np.log2(errors.index.to_numpy())
    for place, machine in enumerate(errors):
        shares = np.log2(np.maximum(errors[machine].to_numpy(), EXACT))
        look = {"marker": "o", "markersize": 3, "linewidth": 1.6, **line_style(place)}
        axes.plot(terms, shares, label=machine, **look)
    axes.set(xlabel="log2 of the number of terms", ylabel="log2 of the relative error", ylim=(np.log2(EXACT) - 0.5, 1))
    tidy(axes)
    legend_beside(figure)
    note = "Random positive FP16 factors. At 0 nothing of the sum is right: it has stopped growing, or overflowed."
    headline(figure, "Loss of precision when many terms of one sign are added up", note)
    return figure


def dot_errors(panels: dict[str, pd.DataFrame]) -> Figure:
    """Frames of dot_products.error_samples by title, one panel each: median, quartiles, and 5 to 95 %."""
    figure = new_figure(height=3.4)
    rows = figure.subplots(1, len(panels), squeeze=False)[0]
    for axes, (title, samples) in zip(rows, panels.items()):
        _draw_samples(axes, samples)
        axes.set_xlabel("error, in $2^{-24}\\ \\Sigma\\,|a\\,b|$")
        tidy(axes, title)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    note = "Line: 5 to 95 % of the products. Bar: half of them. Diamond: the median. The exact sum is at 0."
    headline(figure, "The same FP16 dot products on tensor cores, FP32 sums", note)
    return figure


def _draw_samples(axes: Axes, samples: pd.DataFrame) -> None:
    for place, machine in enumerate(samples):
        low, quarter, middle, three_quarters, high = np.percentile(samples[machine], [5, 25, 50, 75, 95])
        axes.plot([low, high], [place, place], color=BLUE, linewidth=1.2)
        axes.plot([quarter, three_quarters], [place, place], color=BLUE, linewidth=6, solid_capstyle="butt")
        axes.plot(middle, place, "D", color="white", markeredgecolor=BLUE, markersize=5)
    axes.axvline(0, color=GREY, linewidth=1, linestyle=":")
    axes.set_yticks(range(len(samples.columns)), list(samples))
    axes.set_ylim(len(samples.columns) - 0.5, -0.5)
