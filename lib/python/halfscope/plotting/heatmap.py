"""Flushed gradients as a heat map of layers by steps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from halfscope.formats import label
from halfscope.plotting.gradients import NAMES
from halfscope.plotting.style import headline, new_figure, power_of_two
from halfscope.results import Experiment
from halfscope.results.loss_scales import baseline, counters, good_arm, static_scales

LABELS = 40  # beyond so many rows only some are named
FEW_ARRIVED = 0.1  # share of FP32's non-zero elements in a cell: the rest was flushed on the way
BACKWARD = "input \N{LEFTWARDS ARROW}     backward order     \N{LEFTWARDS ARROW} loss"
COLOURS = "YlOrRd"  # sequential, and dark where much is lost, in grey too


def flushed_map(experiment: Experiment, role: str = "activation_gradient") -> Figure | None:
    """Flushed share of the non-zero elements per tensor and observed step; a panel each for FP32, S = 1 and a good S.

    Tensors in the order of the backward pass, the loss at the top. None where nothing was counted.
    """
    maps = {arm: flushed_shares(experiment, arm, role) for arm in shown_arms(experiment)}
    maps = {arm: shares for arm, shares in maps.items() if not shares.empty}
    if not maps:
        return None
    tensors = list(next(iter(maps.values())).index)
    maps = {arm: shares for arm, shares in maps.items() if list(shares.index) == tensors}
    figure = new_figure(height=min(max(2.2 + 0.17 * len(tensors), 3.2), 9.0))
    panels = figure.subplots(1, len(maps), sharey=True, squeeze=False)[0]
    top = top_share(maps.values())
    lost = {arm: _lost_before(experiment, arm, role).reindex_like(shares) for arm, shares in maps.items()}
    for axes, (arm, shares) in zip(panels, maps.items()):
        mesh = draw_map(axes, shares, top)
        _hatch(axes, lost[arm].to_numpy(dtype=bool))
        axes.set_title(_panel_title(experiment, arm), loc="left", size=9)
    name_rows(panels[0], tensors)
    bar = figure.colorbar(mesh, ax=list(panels), pad=0.02, aspect=30)
    bar.set_label("flushed (% of non-zero)")
    bar.outline.set_visible(False)
    format = label(experiment.format_of(next(iter(maps))))
    headline(
        figure, f"{NAMES[role]} that become zero in {format}, layer by layer, over the training", _note(maps, lost)
    )
    return figure


def _note(maps: dict[str, pd.DataFrame], lost: dict[str, pd.DataFrame]) -> str:
    grey = any((shares.isna() & ~lost[arm].eq(True)).any(axis=None) for arm, shares in maps.items())
    hatched = any(lost[arm].eq(True).any(axis=None) for arm in maps)
    notes = ["Grey: zero in FP32 too, so nothing to flush."] * grey
    notes += ["Hatched on dark: flushed nearer the loss already, nine in ten elements that FP32 has or more."] * hatched
    return " ".join(notes)


def shown_arms(experiment: Experiment) -> list[str]:
    """FP32, S = 1 and a good scale, as far as there are such arms."""
    unscaled = [arm for arm, scale in static_scales(experiment).items() if scale == 1]
    return [arm for arm in dict.fromkeys([baseline(experiment), *unscaled, good_arm(experiment)]) if arm]


def flushed_shares(experiment: Experiment, arm: str, role: str) -> pd.DataFrame:
    """Share (%) by tensor, in the order of the backward pass, and step; NaN where a tensor was zero altogether."""
    frame = counters(experiment, arm)
    if frame.empty:
        return frame
    frame = frame[frame["role"] == role]
    order = frame["tensor"].drop_duplicates()
    sums = frame.groupby(["tensor", "step"])[["flushed", "nonzero"]].sum()
    share = 100 * sums["flushed"] / sums["nonzero"].where(sums["nonzero"] > 0)
    return share.unstack("step").reindex(order)


def _lost_before(experiment: Experiment, arm: str, role: str) -> pd.DataFrame:
    """Whether few of the elements arrive that FP32 has at the same tensor and step."""
    present = []
    reference = baseline(experiment)
    if reference is None or counters(experiment, reference).empty:
        reference = arm
    for other in (arm, reference):
        frame = counters(experiment, other)
        frame = frame[frame["role"] == role]
        sums = frame.groupby(["tensor", "step"])[["nonzero", "elements"]].sum()
        present.append((sums["nonzero"] / sums["elements"]).unstack("step"))
    here, in_fp32 = present
    return here < FEW_ARRIVED * in_fp32.reindex_like(here)


def top_share(maps: Iterable[pd.DataFrame]) -> float:
    """Share of the last colour: 100 %, or the first round number above all shares, if that is much less."""
    largest = max(shares.max(axis=None) for shares in maps)
    return next((bound for bound in (1, 2, 5, 10, 20, 50) if largest <= bound), 100)


def draw_map(axes: Axes, shares: pd.DataFrame, top: float) -> QuadMesh:
    """Cells as one picture: as shapes they would make the file large, and show seams."""
    steps = shares.columns.to_numpy(float)
    between = (steps[1:] + steps[:-1]) / 2
    first, last = (between[:1], between[-1:]) if len(between) else (steps + 0.5, steps - 0.5)
    edges = np.concatenate([2 * steps[:1] - first, between, 2 * steps[-1:] - last])
    rows = np.arange(len(shares) + 1) - 0.5
    axes.set_facecolor("#bbbbbb")
    mesh = axes.pcolormesh(edges, rows, np.ma.masked_invalid(shares), cmap=COLOURS, vmin=0, vmax=top, rasterized=True)
    axes.set_ylim(len(shares) - 0.5, -0.5)
    axes.set_xlabel("step")
    axes.spines[:].set_visible(False)
    return mesh


def _hatch(axes: Axes, cells: np.ndarray) -> None:
    """Strokes on a dark ground in place of the cells that are marked, a rectangle for each run of them."""
    coordinates = axes.collections[0].get_coordinates()[0, :, 0]
    for row, marks in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(int)))
        for first, last in zip(edges[::2], edges[1::2]):
            left, right = coordinates[first], coordinates[last]
            look = {"hatch": "////", "facecolor": "#3a3a3a", "edgecolor": "#bbbbbb", "linewidth": 0}
            axes.add_patch(Rectangle((left, row - 0.5), right - left, 1, **look))


def name_rows(axes: Axes, tensors: list[str], label: str = BACKWARD, size: int = 7) -> None:
    """Names of rows, or of some of them, beside the cells."""
    every = -(-len(tensors) // LABELS)
    axes.set_yticks(range(0, len(tensors), every), tensors[::every], size=size)
    axes.set_ylabel(label)


def _panel_title(experiment: Experiment, arm: str) -> str:
    if arm == baseline(experiment):
        return f"{arm}\n({label(experiment.format_of(arm))} would flush, S = 1)"
    return f"{arm}\n(counted, S = {power_of_two(static_scales(experiment)[arm])})"
