"""Curves over steps: the loss and the metric, their means, scales and legends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from halfscope import plotting
from halfscope.results import Experiment, read_experiment
from synthetic import write_json, write_json_lines
from synthetic_scales import DETECTION, write_scale_results
from test_plots import SEEDS, legend


def test_loss_curves(experiment: Experiment) -> None:
    figure = plotting.loss_curves(experiment)
    axes = figure.axes[0]
    assert legend(figure) == ["fp32", "fp16_mixed", "fp16_no_master", "fp16_unprotected\ndiverged at step 300"]
    crosses = [line for line in axes.lines if line.get_marker() == "x"]
    assert [line.get_xdata()[0] for line in crosses] == [300] * SEEDS
    curves = [line for line in axes.lines if line.get_marker() != "x"]
    assert len(curves) == 4 * (SEEDS + 1)
    assert "12 steps" in axes.get_ylabel() and axes.get_xlabel() == "step"


def test_bold_loss_is_the_smoothed_mean_of_the_seeds(experiment: Experiment) -> None:
    axes = plotting.loss_curves(experiment).axes[0]
    bold = next(line for line in axes.lines if line.get_label() == "fp32")
    raw = np.mean([run.steps["loss"] for run in experiment.runs["fp32"]], axis=0)
    assert bold.get_ydata()[299] == pytest.approx(raw[299 - 6 : 299 + 6].mean())


def test_a_loss_of_thousands_does_not_flatten_the_others(results: Path) -> None:
    path = results / "master-copy/fp16_unprotected/seed0"
    lines = [{"step": step, "loss": 5000.0, "metric": None, "scale": 1.0, "skipped": False} for step in range(1, 40)]
    write_json_lines(path / "metrics.jsonl", lines)
    axes = plotting.loss_curves(read_experiment(results / "master-copy")).axes[0]
    top = axes.get_ylim()[1]
    assert top < 5
    assert all(line.get_ydata()[0] <= top for line in axes.lines if line.get_marker() == "x")


def test_metric_curves_are_the_evaluations(tmp_path: Path) -> None:
    figure = plotting.metric_curves(read_experiment(write_scale_results(tmp_path)))
    axes = figure.axes[0]
    assert legend(figure) == [arm.name for arm in DETECTION]
    bold = next(line for line in axes.lines if line.get_label() == "fp16_s8")
    assert bold.get_xdata().tolist() == [10, 20]
    assert bold.get_ydata() == pytest.approx([0.525 / 2 + 0.005, 0.525 + 0.005])  # the second seed is 0.01 better
    assert len(axes.lines) == 3 * len(DETECTION)
    assert axes.get_ylabel() == "AP50" and axes.get_xlabel() == "step" and axes.get_yscale() == "linear"


def test_perplexity_is_logarithmic(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path, metric="test perplexity", lower_is_better=True)
    axes = plotting.metric_curves(read_experiment(folder)).axes[0]
    assert axes.get_yscale() == "log" and axes.get_ylabel() == "test perplexity, lower is better"
    assert axes.yaxis.get_major_formatter()(200, 0) == "200"


def test_one_evaluation_is_no_curve(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path, seeds=1)
    for path in folder.glob("*/seed0/metrics.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        write_json_lines(path, [record | {"metric": 0.5 if record["step"] == 20 else None} for record in records])
    assert plotting.metric_curves(read_experiment(folder)) is None


def test_another_metric_than_the_experiments_is_not_drawn_as_it(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path, seeds=1, metric="train loss")
    path = folder / "fp16_s8/seed0/summary.json"
    write_json(path, json.loads(path.read_text()) | {"metric": 86.4})  # the network's own: its accuracy
    assert plotting.metric_curves(read_experiment(folder)) is None


def test_many_scales_are_coloured_in_order_with_a_colour_bar(sweep: Experiment) -> None:
    figure = plotting.loss_curves(sweep)
    axes, bar = figure.axes
    assert bar.get_ylabel() == "log2 of the static loss scale" and bar.get_ylim() == (-4, 24)
    others = ["fp32", "fp16_dynamic", "fp16_s262144_skip"]
    assert legend(figure) == others
    bold = [line.get_color() for line in axes.lines if line.get_linewidth() == 1.6]
    lightness = [np.dot(colour[:3], (0.2126, 0.7152, 0.0722)) for colour in bold[1:30]]
    assert lightness == sorted(lightness) and lightness[0] < 0.2 < 0.6 < lightness[-1] < 0.8
    assert bold[0] == "#000000"
