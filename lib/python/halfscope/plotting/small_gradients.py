"""The share of gradients below the smallest number of a format over the steps, after Fig. 2b of the paper."""

from __future__ import annotations

from functools import cache
from math import log2

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from halfscope import Histogram
from halfscope.formats import describe, label
from halfscope.plotting.curves import drawn
from halfscope.plotting.gradients import NAMES
from halfscope.plotting.style import arm_style, legend_beside, new_figure, power, tidy
from halfscope.results import Experiment, Run
from halfscope.results.histogram import LOWEST_EXPONENT


def small_gradients(experiment: Experiment, role: str = "weight_gradient") -> Figure | None:
    """Unscaled gradients that are not zero and below the format's smallest number: their share of those not zero.

    Over all tensors and seeds, a line per arm; None where no arm was observed more than once.
    """
    shares = {arm: _shares(runs, role) for arm, runs in drawn(experiment).items()}
    if max((len(share) for share in shares.values()), default=0) < 2:
        return None
    figure = new_figure()
    axes = figure.subplots()
    for arm, share in shares.items():
        if len(share):
            axes.plot(share, label=arm, linewidth=1.6, **arm_style(experiment.arms, arm))
    format = next(runs[0].format for runs in drawn(experiment).values())
    axes.set(xlabel="step", ylabel=f"below {label(format)}'s smallest number (% of non-zero)")
    axes.set_ylim(bottom=0)
    tidy(axes, f"{NAMES[role]} below {power(_smallest(format))}, loss scale removed")
    legend_beside(figure)
    return figure


def _shares(runs: list[Run], role: str) -> pd.Series:
    """Percent by step, of all seeds together."""
    counts: dict[int, np.ndarray] = {}  # below, all: by step

    def add(step: int, found: str, _tensor: str, scale_log2: int, histogram: Histogram) -> None:
        if found == role:
            binades = histogram.binades()[:, 0]
            end = max(0, _smallest(histogram.format) + scale_log2 - LOWEST_EXPONENT)
            counts.setdefault(step, np.zeros(2, np.int64))
            counts[step] += np.array([binades[:end].sum(), binades.sum()])

    for run in runs:
        run.each_histogram(add)
    shares = {step: 100 * below / every for step, (below, every) in sorted(counts.items()) if every}
    return pd.Series(shares, dtype=float)


@cache
def _smallest(format: str) -> int:
    """Exponent of the smallest positive number."""
    return round(log2(describe(format)["smallest"]))
