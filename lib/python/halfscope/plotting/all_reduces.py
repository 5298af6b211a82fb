"""All-reduces: errors of means over ranks, and training losses by the number of ranks and the order of their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from halfscope.plotting.curves import has_steps
from halfscope.plotting.style import headline, legend_beside, line_style, new_figure, tidy
from halfscope.results import Experiment, Run

AFTER = "deepspeed"  # the division that flushes nothing


def mean_errors(experiment: Experiment) -> Figure | None:
    """Error of the means and stagnated adds against the number of ranks, a line per order.

    The gradients are the first kind in the experiment's table, divided after the sum. None without such a table.
    """
    rows = pd.DataFrame(experiment.summary.get("all_reduces") or ())
    if rows.empty:
        return None
    gradients = rows["gradients"].iloc[0]
    rows = rows[(rows["gradients"] == gradients) & (rows["division"] == AFTER)]
    figure = new_figure(width=9.6, height=3.8)
    left, right = figure.subplots(1, 2)
    for place, (order, line) in enumerate(rows.groupby("order", sort=False)):
        look = line_style(place) | {"marker": "o"}
        left.plot(line["ranks"], line["relative_error"].astype(float), label=order, markersize=4, **look)
        right.plot(line["ranks"], line["stagnated"], markersize=4, **look)
    left.set(yscale="log", ylabel="relative error of the mean")
    right.set_ylabel("adds that stagnate")
    right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    for axes, title in ((left, "Error"), (right, "Stagnation")):
        _number_ranks(axes, set(rows["ranks"]))
        tidy(axes, title)
    headline(figure, f"FP16 means over ranks: {gradients}", "Divided by the number of ranks after the sum.")
    legend_beside(figure)
    return figure


def losses_on_ranks(experiment: Experiment) -> Figure | None:
    """Training loss over steps on the most ranks that the arms have, a panel per model and a line per all-reduce.

    Means over seeds, over the pale curves of the seeds. None unless a model has two all-reduces on several ranks.
    """
    panels = _on_most_ranks(experiment)
    if not panels or not has_steps(experiment):
        return None
    figure, row = _row_of(len(panels))
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    for axes, ((model, ranks), lines) in zip(row, panels.items()):
        for name, runs in lines.items():
            place = names.index(name)
            look = line_style(place)
            curves = [run.steps["loss"] for run in runs]
            for curve in curves:
                axes.plot(curve, color=look["color"], alpha=0.2, linewidth=0.5)
            mean = pd.concat(curves, axis=1).mean(axis=1)
            axes.plot(mean, linewidth=1.6, label=name if axes is row[0] or len(panels) == 1 else None, **look)
        axes.set(xlabel="step", ylabel="loss")
        axes.set_ylim(0, 1.05 * _top(lines))
        tidy(axes, f"{model}, {ranks:,} ranks")
    legend_beside(figure)
    return figure


def _row_of(panels: int) -> tuple[Figure, Sequence[Axes]]:
    figure = new_figure(width=4.8 * max(panels, 1.5), height=3.6)
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def _number_ranks(axes: Axes, ranks: set[int]) -> None:
    ticks = sorted(ranks)
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [f"{number:,}" for number in ticks])
    axes.set_xlabel("ranks")


def _top(lines: dict[str, list[Run]]) -> float:
    """The largest finite loss."""
    losses = np.concatenate([run.steps["loss"].to_numpy(dtype=float) for runs in lines.values() for run in runs])
    return float(np.nanmax(losses, initial=0, where=np.isfinite(losses))) or 1


def losses_by_ranks(experiment: Experiment) -> Figure | None:
    """Training loss at the end against the number of ranks, a panel per model and a line per all-reduce.

    Means over seeds, among the seeds' dots. None unless a model has an all-reduce on two numbers of ranks.
    """
    panels = {model: arms for model, arms in _by_model(experiment).items() if _has_line(arms)}
    if not panels:
        return None
    figure, row = _row_of(len(panels))
    names = list(dict.fromkeys(arm.all_reduce for arms in panels.values() for arm in arms))
    unlabelled = set(names)
    for axes, (model, arms) in zip(row, panels.items()):
        for place, name in enumerate(names):
            look = line_style(place)
            losses = {arm.ranks: _final_losses(arm.runs) for arm in arms if arm.all_reduce == name}
            dots = [(ranks, loss) for ranks, seeds in losses.items() for loss in seeds]
            if not dots:
                continue
            axes.plot(*zip(*dots), ".", color=look["color"], alpha=0.4)
            means = [np.mean(seeds) if seeds else np.nan for seeds in losses.values()]
            axes.plot(
                losses.keys(), means, marker="o", markersize=4, label=name if name in unlabelled else None, **look
            )
            unlabelled.discard(name)
        _number_ranks(axes, {arm.ranks for arm in arms})
        axes.set_ylabel("training loss at the end")
        tidy(axes, model)
    legend_beside(figure)
    return figure


def _has_line(arms: list[_Arm]) -> bool:
    return any(
        len({arm.ranks for arm in arms if arm.all_reduce == name and _final_losses(arm.runs)}) > 1
        for name in {arm.all_reduce for arm in arms}
    )


def _final_losses(runs: list[Run]) -> list[float]:
    """Losses of the seeds that did not diverge."""
    losses = [run.summary.get("train_loss") for run in runs]
    return [loss for loss in losses if loss is not None]


class _Arm(NamedTuple):
    ranks: int
    all_reduce: str
    runs: list[Run]


def _by_model(experiment: Experiment) -> dict[str, list[_Arm]]:
    """Arms with a run, in their order."""
    arms: dict[str, list[_Arm]] = {}
    for runs in experiment.runs.values():
        if runs:
            config = runs[0].config
            arm = _Arm(config.get("ranks", 1), config.get("all_reduce", "nccl_ring/fp32"), runs)
            arms.setdefault(config.get("model", ""), []).append(arm)
    return arms


def _on_most_ranks(experiment: Experiment) -> dict[tuple[str, int], dict[str, list[Run]]]:
    """Runs by model with its largest number of ranks, and by all-reduce."""
    panels = {}
    for model, arms in _by_model(experiment).items():
        most = max(arm.ranks for arm in arms)
        lines = {arm.all_reduce: arm.runs for arm in arms if arm.ranks == most}
        if most > 1 and len(lines) > 1:
            panels[model, most] = lines
    return panels
