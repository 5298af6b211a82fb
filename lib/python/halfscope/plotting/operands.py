"""Operands of products in formats of their own, and tensors in blocks: maps of layers by steps, delayed scales."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from halfscope.formats import label
from halfscope.plotting.heatmap import draw_map, name_rows, top_share
from halfscope.plotting.style import headline, legend_beside, line_style, new_figure, tidy
from halfscope.results import Experiment

SHARES = {"flushed": "become zero", "clipped": "lie beyond the largest number"}
# Roles of a watched run's tensors in the order of the map, and the words behind the tensor's name.
WORDS = {
    "activation": " (output)", "activation_gradient": " (output, gradient)", "weight": "",
    "weight_gradient": " (gradient)", "optimizer_state": "",
}  # fmt: skip


def operand_map(experiment: Experiment, arm: str) -> Figure | None:
    """Shares of the nonzero operand elements that are flushed and clipped, per layer and observed step.

    Layers in the order of the forward pass, each with all of its operands, over all seeds. None where nothing was
    counted.
    """
    frame = operand_counters(experiment, arm)
    title = f"Operand elements that {arm} loses, layer by layer, over the training"
    return None if frame.empty else _loss_map(frame.assign(row=frame["layer"]), "layers", title)


def block_map(experiment: Experiment, arm: str) -> Figure | None:
    """Shares of the nonzero elements of a run watched for a block format, per tensor and role, the roles one by one.

    None where nothing was counted by block.
    """
    frame = _counters(experiment, arm, "blocks")
    if frame.empty:
        return None
    roles = pd.Categorical(frame["role"], list(WORDS), ordered=True)
    named = (frame["tensor"] + frame["role"].map(WORDS)).str.strip()
    frame = frame.assign(row=named, role=roles).sort_values("role", kind="stable")
    title = f"Elements that {label(experiment.format_of(arm))} loses, tensor by tensor, over the training"
    return _loss_map(frame, "tensors", title)


def _loss_map(frame: pd.DataFrame, rows: str, title: str) -> Figure:
    """A panel each for the flushed and the clipped share, by `row` of the frame and step."""
    order = frame["row"].drop_duplicates()
    nonzero = frame["elements"] - frame["zeros"] - frame["nonfinite"]
    sums = frame.assign(nonzero=nonzero).groupby(["row", "step"])[[*SHARES, "nonzero"]].sum()
    figure = new_figure(height=min(max(2.2 + 0.17 * len(order), 3.2), 9.0))
    panels = figure.subplots(1, len(SHARES), sharey=True, squeeze=False)[0]
    for axes, (share, words) in zip(panels, SHARES.items()):
        cells = (100 * sums[share] / sums["nonzero"].where(sums["nonzero"] > 0)).unstack("step").reindex(order)
        mesh = draw_map(axes, cells, top_share([cells]))
        axes.set_title(words, loc="left", size=9)
        bar = figure.colorbar(mesh, ax=axes, pad=0.02, aspect=30)
        bar.set_label("% of nonzero")
        bar.outline.set_visible(False)
    name_rows(panels[0], list(order), rows)
    empty = int(np.maximum(frame["zero_scales"] - frame["zero_blocks"], 0).sum())
    note = f"{empty} of {frame['blocks'].sum()} blocks with nonzero numbers have a scale of 0." if empty else ""
    headline(figure, title, note)
    return figure


def delayed_scales(experiment: Experiment, arm: str) -> Figure | None:
    """log2 of the delayed scale used over the one that the step's own largest magnitude gives, over observed steps.

    The range over all operands, and the median of each operand's layers. Above 0 the largest elements clip; -1 leaves
    a binade unused. None of an arm without delayed scales.
    """
    frame = operand_counters(experiment, arm)
    if "scale" not in frame or frame["scale"].isna().all():
        return None
    frame = frame.dropna(subset=["scale"])
    binades = np.log2(frame["scale"] / frame["own_scale"])
    figure = new_figure()
    axes = figure.subplots()
    by_step = binades.groupby(frame["step"])
    axes.fill_between(by_step.min().index, by_step.min(), by_step.max(), color="#cccccc", linewidth=0, label="all")
    for place, (operand, rows) in enumerate(frame.groupby("operand", sort=False)):
        median = binades[rows.index].groupby(rows["step"]).median()
        axes.plot(median, label=operand, marker="o" if len(median) == 1 else None, **line_style(place))
    axes.axhline(0, color="#666666", linewidth=0.8)
    axes.set(xlabel="step", ylabel="log2 (scale used / scale of its own step)")
    tidy(axes, f"Delayed scales of {arm} beside those that fit\n(above 0 the largest elements clip)")
    legend_beside(figure)
    return figure


def operand_counters(experiment: Experiment, arm: str) -> pd.DataFrame:
    """Rows of all operands of an arm's runs, one per observed step, layer and operand; empty where there are none."""
    return _counters(experiment, arm, "operands")


def _counters(experiment: Experiment, arm: str, kind: str) -> pd.DataFrame:
    frames = [run.counters(kind) for run in experiment.runs[arm]]
    frames = [frame for frame in frames if not frame.empty]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
