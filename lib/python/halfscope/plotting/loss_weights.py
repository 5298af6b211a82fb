"""Harm of FP16 against the weight of the loss, beside the share of the gradients that it flushes."""

from __future__ import annotations

from math import log2

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.plotting.style import COLOURS, DASHES, legend_beside, new_figure, tidy
from halfscope.results import Experiment
from halfscope.results.loss_weights import WeightedArm, by_loss_weight, weight_text

MARKERS = "osD^v"


def loss_weight_curve(experiment: Experiment) -> Figure | None:
    """Loss of FP16 above FP32, and flushed share of its activation gradients, against the weight of the loss.

    A line per model and loss scale: its colour is the scale's, its marker and dashes are the model's. None for less
    than three weights.
    """
    series = by_loss_weight(experiment)
    if not series:
        return None
    figure = new_figure(width=9.6, height=3.8)
    left, right = figure.subplots(1, 2)
    models = list(dict.fromkeys(model for model, _ in series))
    scales = list(dict.fromkeys(scale for _, scale in series))
    for (model, scale), arms in series.items():
        look = {
            "color": COLOURS[(1 + scales.index(scale)) % len(COLOURS)],
            "marker": MARKERS[models.index(model) % len(MARKERS)],
            "linestyle": DASHES[models.index(model) % len(DASHES)],
            "markersize": 4,
        }
        name = f"{model}, {'S = ' if scale[:1].isdigit() else ''}{scale}"
        left.plot(*_points([(arm, arm.behind) for arm in arms]), label=name, **look)
        right.plot(*_points([(arm, arm.flushed and 100 * arm.flushed) for arm in arms]), **look)
    left.axhline(0, color=COLOURS[0], linewidth=1)
    unit = "points" if experiment.summary["unit"] == "%" else experiment.metric_label
    left.set_ylabel(f"behind FP32 ({unit})")
    right.set(ylabel="non-zero activation gradients (%)", ylim=(-2, 102))
    weights = {arm.weight for arms in series.values() for arm in arms}
    for axes, title in ((left, "Result"), (right, "Flushed to zero")):
        _weight_axis(axes, sorted(weights, reverse=True))
        tidy(axes, title)
    legend_beside(figure)
    return figure


def _points(values: list[tuple[WeightedArm, float | None]]) -> tuple[list[float], list[float]]:
    known = [(-log2(arm.weight), value) for arm, value in values if value is not None]
    return [x for x, _ in known], [y for _, y in known]


def _weight_axis(axes: Axes, weights: list[float]) -> None:
    axes.set_xticks([-log2(weight) for weight in weights], list(map(weight_text, weights)), rotation=45, ha="right")
    axes.set_xlabel("weight of the loss")
