"""Figures of operands with formats of their own: maps of layers by steps, and delayed scales."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from halfscope import plotting
from halfscope.plotting.drawings import draw
from halfscope.results import Experiment, read_experiment
from synthetic import write_json_lines
from synthetic_scales import write_scale_results

LAYERS, STEPS, OPERANDS = ("fc1", "fc2"), (1, 5), ("forward.left", "forward.right")
ARM = "fp16_s1"


def counted(step: int, layer: str, operand: str, **more: float) -> dict:
    """100 elements, 10 of them zero; fc2 flushes 18 and clips 9 in step 5 alone."""
    loses = layer == "fc2" and step == 5
    return {
        "layer": layer, "operand": operand, "elements": 100, "zeros": 10, "nonfinite": 0, "flushed": 18 * loses,
        "clipped": 9 * loses, "blocks": 4, "zero_blocks": 1, "zero_scales": 3 if loses else 1, **more,
    }  # fmt: skip


def written(folder: Path, delayed: bool) -> Experiment:
    """One seed of an arm with operands; a delayed scale that is four times too large in step 5, half before."""
    write_scale_results(folder, seeds=1)
    scales = {1: {"scale": 4.0, "own_scale": 8.0}, 5: {"scale": 8.0, "own_scale": 2.0}}
    records = [
        {"step": step, "loss": 1.0, "metric": None, "scale": 1.0, "skipped": False, "operands": [
            counted(step, layer, operand, **(scales[step] if delayed else {}))
            for layer in LAYERS for operand in OPERANDS
        ]}
        for step in STEPS
    ]  # fmt: skip
    path = next(folder.rglob(f"{ARM}/seed0/metrics.jsonl"))
    write_json_lines(path, records)
    return read_experiment(path.parents[2])


def test_the_map_shows_what_each_layer_loses(tmp_path: Path) -> None:
    figure = plotting.operand_map(written(tmp_path, delayed=False), ARM)
    assert figure is not None
    flushed, clipped = figure.axes[:2]
    assert np.asarray(flushed.collections[0].get_array()) == pytest.approx(np.array([[0, 0], [0, 20]]))
    assert np.asarray(clipped.collections[0].get_array()) == pytest.approx(np.array([[0, 0], [0, 10]]))
    assert [label.get_text() for label in flushed.get_yticklabels()] == list(LAYERS)
    assert "4 of 32 blocks" in figure.get_supxlabel()


def test_delayed_scales_lie_beside_those_that_fit(tmp_path: Path) -> None:
    experiment = written(tmp_path, delayed=True)
    figure = plotting.delayed_scales(experiment, ARM)
    assert figure is not None
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert lines["forward.left"].get_xdata().tolist() == list(STEPS)
    assert lines["forward.right"].get_ydata().tolist() == [-1, 2]
    assert {f"operands_{ARM}", f"delayed_scales_{ARM}"} <= {drawing.name for drawing in draw(experiment)}


def test_arms_without_operands_have_no_such_figures(tmp_path: Path) -> None:
    experiment = written(tmp_path, delayed=False)
    assert plotting.operand_map(experiment, "fp32") is None
    assert plotting.delayed_scales(experiment, "fp32") is None
    assert plotting.delayed_scales(experiment, ARM) is None
