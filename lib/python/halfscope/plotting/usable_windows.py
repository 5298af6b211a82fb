"""Loss scales that do no harm, task by task, beside the one that the advisor names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any

from matplotlib.figure import Figure

from halfscope.plotting.style import BLUE, GREEN, GREY, RED, headline, legend_at, new_figure, power, tidy
from halfscope.results import Experiment

CONSTANT = 10  # log2 of the constant scale that is drawn beside
MOST_TASKS = 60


def usable_windows(experiment: Experiment) -> Figure | None:
    """A row per task: the scales that were trained, the usable ones among them, and the advisor's.

    A scale is usable where most seeds end unharmed. None where the summary holds no such evidence, and where tasks were
    not trained at neighbouring powers of two.
    """
    evidence = experiment.summary.get("harm")
    if not evidence or not 0 < len(evidence.get("advice", [])) <= MOST_TASKS:
        return None
    tasks = [(line, _scales(evidence["trainings"], line["task"])) for line in evidence["advice"]]
    if any(_step(scales) != 1 for _, scales in tasks):
        return None
    figure = new_figure(height=1.6 + 0.19 * len(tasks))
    axes = figure.subplots()
    for row, (advice, scales) in enumerate(tasks):
        usable = [scale for scale, harms in scales.items() if not harms]
        axes.plot([min(scales), max(scales)], [row, row], color=GREY, linewidth=0.6)
        axes.plot(usable, [row] * len(usable), "s", color=GREEN, markersize=5, label=None if row else "no harm")
        right = not scales[_nearest(list(scales), advice["use_log2"])]
        axes.plot(advice["use_log2"], row, "o" if right else "X", color=BLUE if right else RED, markersize=6)
    axes.plot([], [], "o", color=BLUE, label="the advisor's scale, right")
    axes.plot([], [], "X", color=RED, label="the advisor's scale, wrong")
    axes.axvline(CONSTANT, color=GREY, linewidth=1, linestyle="--", label="1024")
    axes.set_yticks(range(len(tasks)), [_label(advice) for advice, _ in tasks], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel("loss scale")
    axes.xaxis.set_major_formatter(lambda value, _: power(round(value)))
    legend_at(axes)
    tidy(axes)
    note = "Thin lines: scales that were trained, each power of two. Named behind a task: the format of its gradients."
    headline(figure, "Loss scales that do no harm, by task", note)
    return figure


def _label(advice: Mapping[str, Any]) -> str:
    return f"{advice['task'].replace('_', ' ')}, {advice['format']}"


def _scales(trainings: Sequence[Mapping[str, Any]], task: str) -> dict[int, bool]:
    """Whether most seeds were harmed, by log2 of the scale, ascending."""
    seeds: dict[int, list[bool]] = {}
    for line in trainings:
        if line["task"] == task:
            seeds.setdefault(line["scale_log2"], []).append(line["harmed"])
    return {scale: mean(seeds[scale]) > 0.5 for scale in sorted(seeds)}


def _step(scales: Mapping[int, bool]) -> int:
    """The largest distance of neighbouring scales."""
    places = list(scales)
    return max((above - below for below, above in pairwise(places)), default=0)


def _nearest(places: Sequence[int], scale: int) -> int:
    """The largest that is not above `scale`; the smallest where all are."""
    return max((place for place in places if place <= scale), default=places[0])
