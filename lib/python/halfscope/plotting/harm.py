"""Predictors of harm against the harm that was done: one point per training at a loss scale."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.plotting.style import COLOURS, GREY, RED, headline, legend_at, new_figure, tidy
from halfscope.results import Experiment

MARKERS = {"fitted": "o", "held_out": "^"}
LEAST, MOST = 1e-4, 3.0  # range of a predictor; smaller and larger ones stand at the edge
LEAST_HARM, MOST_HARM = -0.03, 1.0  # range of the loss above FP32's, likewise


def harm_by_predictor(experiment: Experiment) -> Figure | None:
    """How far each training's loss ends above FP32's against each predictor's largest value over the FP32 run.

    A panel per predictor, with its threshold; None where the summary holds no such evidence. Trainings that diverged,
    which overflow does, are left out.
    """
    evidence = experiment.summary.get("harm")
    if not evidence or not evidence["trainings"]:
        return None
    places = [place for place, line in enumerate(evidence["predictors"]) if line["steps"] == "all"]
    trainings = [line for line in evidence["trainings"] if line["loss_ratio"] is not None]
    colours = _colours(line["task"] for line in trainings)
    rows = -(-len(places) // 2)
    figure = new_figure(height=3.2 * rows)
    panels = list(figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False).flat)
    for axes in panels[len(places) :]:
        axes.remove()
    for axes, place in zip(panels, places):
        _draw(axes, evidence["predictors"][place], [(line, line["predictors"][place]) for line in trainings], colours)
        axes.axhline(100 * evidence["harmful"], color=GREY, linewidth=0.8, linestyle=":")
    figure.axes[0].set(xscale="log", xlim=(LEAST / 1.5, MOST * 1.5), ylim=(-4, 105))
    for axes in panels[: len(places)][-2:]:
        axes.set_xlabel("largest of the FP32 run's steps")
        axes.tick_params(labelbottom=True)
    for axes in figure.axes[::2]:
        axes.set_ylabel("loss above FP32's (%)")
    legend_at(figure.axes[1])
    headline(figure, "Predictors of the harm that a loss scale does", _note(evidence))
    return figure


def _colours(tasks: Iterable[str]) -> dict[str, str]:
    """A colour for each task, whatever its optimizer."""
    networks = list(dict.fromkeys(task.rpartition("_")[0] for task in tasks))
    return {network: COLOURS[place % len(COLOURS)] for place, network in enumerate(networks)}


def _draw(axes: Axes, predictor: dict, points: list[tuple[dict, float | None]], colours: dict[str, str]) -> None:
    for network, colour in colours.items():
        own = [(line, value) for line, value in points if line["task"].rpartition("_")[0] == network]
        x = [MOST if value is None else min(max(value, LEAST), MOST) for _, value in own]
        y = [100 * min(max(line["loss_ratio"] - 1, LEAST_HARM), MOST_HARM) for line, _ in own]
        axes.plot(x, y, MARKERS[own[0][0]["set"]], color=colour, markersize=4, alpha=0.7, linewidth=0, label=network)
    if predictor["threshold"] is not None:
        axes.axvspan(predictor["low"], predictor["high"], color=RED, alpha=0.08, linewidth=0)
        axes.axvline(predictor["threshold"], color=RED, linewidth=1)
    fitted, held_out = predictor["fitted"], predictor["held_out"]
    counts = f"right in {fitted['right']} of {fitted['total']},\nheld out {held_out['right']} of {held_out['total']}"
    axes.text(LEAST, 97, counts, size=8, verticalalignment="top")
    tidy(axes, predictor["name"].capitalize())


def _note(evidence: dict) -> str:
    return (
        f"A point is a training at one scale; above the dotted line, {100 * evidence['harmful']:g} %, it is harmed.\n"
        "Red: the threshold that is right most often on the tasks with circles, with its 95 % interval.\n"
        "Triangles: held-out tasks. Values beyond the axes stand at their edges."
    )
