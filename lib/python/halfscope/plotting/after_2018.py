"""Figures of what was asked after 2018, drawn beside published numbers: moments, FP4, zeros, FP8 sums."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from halfscope.plotting.style import BLUE, COLOURS, GREY, RED, headline, legend_beside, line_style, new_figure, tidy
from halfscope.results import Experiment

# Loss against BF16, percent: Quartet II (2026), table of a Llama of 30M weights, 98 tokens a weight.
QUARTET = {
    "nvfp4_forward": 1.90,
    "nvfp4_forward_16x16": 2.16,
    "mxfp4_forward": 2.90,
    "nvfp4_backward_stochastic": 0.34,
    "recipe": 2.45,
}
# Loss against BF16, percent, after 1T tokens: NVIDIA's recipe and MXFP4 (2509.25149).
NVIDIA = {"recipe": 1.5, "mxfp4": 2.5}
CAUSES = {
    "no_quantizer": "true zeros",
    "forward_operand": "forward operand",
    "data_operand": "operand of the gradient handed back",
    "weight_gradient_left": "gradient operand of the weight's",
    "weight_gradient_right": "activation operand of the weight's",
    "cancelled": "cancelled",
}
HOPPER_PUBLISHED = {"bias": (4096, -0.066), "largest_error": (4096, 1.1e-2)}


def mean_squares(experiment: Experiment) -> Figure | None:
    """Adam's v after 100, 1,000 and 3,000 steps by its format, beside its expectation; None without that finding."""
    rows = pd.DataFrame(experiment.summary.get("mean_squares") or ())
    if rows.empty:
        return None
    steps = [int(column.removeprefix("after_")) for column in rows.columns if column.startswith("after_")]
    figure = new_figure()
    axes = figure.subplots()
    fine = np.linspace(1, max(steps), 200)
    axes.plot(fine, 1 - 0.999**fine, color=GREY, linewidth=4, alpha=0.35, label="expected: $1 - 0.999^n$")
    for place, row in enumerate(rows.to_dict("records")):
        values = [float(row[f"after_{step}"]) for step in steps]
        axes.plot(steps, values, marker="o", markersize=4, label=row["format"], **line_style(place))
    axes.set(xlabel="step n", ylabel="mean of v", ylim=(0, None))
    tidy(axes, "Adam's v of standard normal gradients, rounded each step")
    legend_beside(figure)
    return figure


def fp4_costs(experiment: Experiment) -> Figure | None:
    """The arms in the order of their cost, percent of FP32's metric, beside Quartet II's and NVIDIA's numbers.

    Dots are seeds, paired with FP32's of the same seed. None unless half of the published arms were run.
    """
    costs = _costs(experiment)
    if len(costs.keys() & QUARTET.keys()) <= len(QUARTET) / 2:
        return None
    order = sorted(costs, key=lambda arm: np.mean(costs[arm]))
    figure = new_figure(height=1.2 + 0.3 * len(order))
    axes = figure.subplots()
    for place, arm in enumerate(order):
        axes.plot(costs[arm], [place] * len(costs[arm]), "o", color=BLUE, alpha=0.35, markersize=5)
        axes.plot(
            np.mean(costs[arm]), place, "D", color=BLUE, markersize=6, label=None if place else "here: mean, seeds"
        )
    for published, mark, name in ((QUARTET, "x", "Quartet II, 30M weights"), (NVIDIA, "+", "NVIDIA, 1T tokens")):
        known = [(published[arm], place) for place, arm in enumerate(order) if arm in published]
        if known:
            axes.plot(*zip(*known), mark, color=RED, markersize=9, markeredgewidth=2, label=name)
    axes.axvline(0, color=GREY, linewidth=1)
    axes.set_yticks(range(len(order)), order)
    axes.set_ylim(len(order) - 0.5, -0.5)
    axes.set_xlabel(f"{experiment.metric_label} above FP32's; published: loss above BF16's (%)")
    tidy(axes, "Cost of operands of 4 bits")
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    legend_beside(figure)
    return figure


def _costs(experiment: Experiment) -> dict[str, list[float]]:
    """Percent above the arm fp32, seed by seed, of the arms that have finished seeds beside it."""
    values = {arm.name: arm.values for arm in experiment.arms}
    exact = values.pop("fp32", ())
    costs = {
        arm: [100 * (own / base - 1) for own, base in zip(seeds, exact) if own is not None and base]
        for arm, seeds in values.items()
    }
    return {arm: seeds for arm, seeds in costs.items() if seeds}


def causes_of_zeros(experiment: Experiment) -> Figure | None:
    """Share of the weight gradients that are 0 over steps, by cause and arm, mean over seeds.

    None where no zeros were explained.
    """
    panels = {arm: shares for arm in experiment.runs if len(shares := _shares_of_zeros(experiment, arm))}
    if not panels:
        return None
    figure = new_figure(width=2.6 * max(len(panels), 2), height=3.4)
    row = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    top = max(shares.sum(axis=1).max() for shares in panels.values())
    for axes, (arm, shares) in zip(row, panels.items()):
        _stack_causes(axes, shares)
        axes.set(xlabel="step", ylim=(0, 1.05 * top or 1))
        tidy(axes, arm)
    row[0].yaxis.set_major_formatter(PercentFormatter(1, decimals=None))
    row[0].set_ylabel("zeros among weight gradients")
    handles, labels = row[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3, frameon=False)
    headline(figure, "Why a weight gradient is 0: the first quantizer from which on all its terms are")
    return figure


def _stack_causes(axes: Axes, shares: pd.DataFrame) -> None:
    colours = COLOURS[1 : 1 + len(CAUSES)]
    axes.stackplot(shares.index, *(shares[cause] for cause in CAUSES), labels=list(CAUSES.values()), colors=colours)
    if len(shares) > 1:
        axes.set_xlim(shares.index.min(), shares.index.max())


def _shares_of_zeros(experiment: Experiment, arm: str) -> pd.DataFrame:
    """Per step and cause."""
    seeds = [run.zero_causes for run in experiment.runs[arm] if not run.zero_causes.empty]
    if not seeds:
        return pd.DataFrame()
    shares = [frame[list(CAUSES)].div(frame["elements"], axis=0) for frame in seeds]
    return pd.concat(shares).groupby("step").mean()


def sum_errors(experiment: Experiment) -> Figure | None:
    """Errors of FP8 dot products by their number of terms, a line per sum, beside published ones.

    Left: the largest error over the root mean square of results of both signs. Right: the mean error of sums of one
    sign. None without that finding.
    """
    rows = pd.DataFrame(experiment.summary.get("fp8_sums") or ())
    if rows.empty:
        return None
    figure = new_figure(width=9.6, height=3.8)
    left, right = figure.subplots(1, 2)
    for place, (model, line) in enumerate(rows.groupby("model", sort=False)):
        look = line_style(place) | {"marker": "o", "markersize": 4}
        name = str(model).removeprefix("fp8_e4m3_tensor_core(").removesuffix(")")
        left.plot(line["terms"], _positive(line["largest_error"]), label=name, **look)
        right.plot(line["terms"], _positive(line["bias"].abs()), **look)
    for axes, key, title in ((left, "largest_error", "Both signs"), (right, "bias", "One sign")):
        terms, value = HOPPER_PUBLISHED[key]
        label = "another program's, Hopper" if axes is left else None
        axes.plot(terms, abs(value), "x", color=RED, markersize=9, markeredgewidth=2, label=label)
        axes.set_xscale("log", base=2)
        axes.set(yscale="log", xlabel="terms K", ylim=(None, 0.3))
        axes.set_xticks(sorted(set(rows["terms"])), [f"{terms:,}" for terms in sorted(set(rows["terms"]))])
        tidy(axes, title)
    left.axhline(0.02, color=GREY, linewidth=1, linestyle=":")
    left.text(rows["terms"].min(), 0.025, "DeepSeek-V3: nearly 2 % at 4,096", fontsize=8, color=GREY)
    left.set_ylabel("largest error / RMS")
    right.set_ylabel("mean error, share of the sum")
    headline(figure, "Sums of products of E4M3 numbers as tensor cores add them up")
    legend_beside(figure)
    return figure


def _positive(errors: pd.Series) -> pd.Series:
    """NaN in place of 0, which a logarithmic axis has no place for."""
    return errors.where(errors > 0)
