"""Flushed gradients as FP32's histograms predict them and as FP16 training counts them, tensor by tensor."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from halfscope.plotting.gradients import NAMES
from halfscope.plotting.style import AMBER, BLUE, GREY, headline, new_figure, power_of_two, tidy
from halfscope.results import Experiment, Prediction

PANELS = 3  # arms, smallest scale first: where the scale is large nothing is flushed
LABELS = 45  # beyond so many rows only some are named
ROLES = {"activation_gradient": BLUE, "weight_gradient": AMBER}
APART = 0.005  # half a point: counted and predicted shares that lie closer together agree


def predicted_and_counted(experiment: Experiment) -> Figure | None:
    """Per tensor, the loss at the top: share flushed at the first step, predicted (ring) and counted (dot), %.

    A panel for each of the three smallest scales; None where the summary holds no predictions.
    """
    arms = predicted_arms(experiment)
    if not arms:
        return None
    panels = {arm: [line for line in experiment.predictions if line.arm == arm] for arm in arms[:PANELS]}
    rows = list(dict.fromkeys((line.tensor, line.role) for lines in panels.values() for line in lines))
    figure = new_figure(height=min(max(2.4 + 0.17 * len(rows), 3.4), 10.0))
    for axes, (arm, lines) in zip(figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items()):
        _draw_panel(axes, lines, rows)
        tidy(axes)
        name = arm.replace("+", "\n")  # arms of a grid have long names
        axes.set_title(f"{name}\nS = {power_of_two(lines[0].scale)}", loc="left", size=9)
    _name_rows(figure.axes[0], [tensor for tensor, _ in rows])
    _legend(figure, {role for _, role in rows})
    headline(
        figure,
        "Elements flushed to zero at the first step: predicted from FP32, and counted",
        predictions_in_words(experiment),
    )
    return figure


def predictions_in_words(experiment: Experiment) -> str:
    """How the counted shares lie beside the predicted ones, and why."""
    lines = experiment.predictions
    lower = sum(line.predicted - line.counted > APART for line in lines)
    higher = sum(line.counted - line.predicted > APART for line in lines)
    found = f"{lower} of {len(lines)} counted shares are lower than predicted, {higher} higher, the others agree."
    if not lower:
        return found
    return (
        f"{found}\n"
        "Further from the loss less is left to flush: what was flushed nearer the loss arrives as an exact zero.\n"
        "The prediction is made from FP32 training, which loses nothing on the way."
    )


def predicted_arms(experiment: Experiment) -> list[str]:
    """The arms with predictions, smallest scale first."""
    scales = {line.arm: line.scale for line in experiment.predictions}
    return sorted(scales, key=scales.__getitem__)


def _draw_panel(axes: Axes, lines: list[Prediction], rows: list[tuple[str, str]]) -> None:
    for line in lines:
        row = rows.index((line.tensor, line.role))
        colour = ROLES.get(line.role, GREY)
        predicted, counted = 100 * line.predicted, 100 * line.counted
        axes.plot([predicted, counted], [row, row], "-", color=colour, linewidth=1.2, alpha=0.6)
        axes.plot(predicted, row, "o", color=colour, markerfacecolor="white", markersize=6, clip_on=False)
        axes.plot(counted, row, "o", color=colour, markersize=4, clip_on=False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set(xlim=(0, 100), xlabel="flushed (%)", xticks=(0, 50, 100))


def _name_rows(axes: Axes, tensors: list[str]) -> None:
    every = -(-len(tensors) // LABELS)
    axes.set_yticks(range(0, len(tensors), every), tensors[::every], size=7)
    axes.set_ylabel("input \N{LEFTWARDS ARROW}     backward order     \N{LEFTWARDS ARROW} loss")


def _legend(figure: Figure, roles: set[str]) -> None:
    look = {"marker": "o", "linestyle": "none"}
    handles = [
        Line2D([], [], color=GREY, markerfacecolor="white", label="predicted", **look),
        Line2D([], [], color=GREY, markersize=4, label="counted", **look),
    ]
    for role in filter(roles.__contains__, ROLES):
        handles.append(Line2D([], [], color=ROLES[role], label=NAMES[role].lower().replace(" ", "\n")))
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8)
