"""Figures with a row per tensor: flushed shares by layer and step, and as predicted and counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex

from halfscope import plotting
from halfscope.plotting.style import AMBER, BLUE
from halfscope.results import Experiment, read_experiment
from synthetic import write_json_lines
from synthetic_scales import DETECTION, OBSERVED, TENSORS, flushed, predictions, write_scale_results
from test_plots import overlaps


def test_the_map_shows_the_flushed_share_of_every_tensor_and_step(detection: Experiment) -> None:
    figure = plotting.flushed_map(detection, "activation_gradient")
    *panels, bar = figure.axes
    assert [axes.get_title("left") for axes in panels] == [
        "fp32\n(FP16 would flush, S = 1)", "fp16_s1\n(counted, S = 1)", "fp16_s8\n(counted, S = 8)",
    ]  # fmt: skip
    for axes, scale in zip(panels, (1, 1, 8)):
        shares = axes.collections[0].get_array()
        expected = [[100 * flushed(scale, place, step) / 800 for step in OBSERVED] for place in (0, 2)]
        assert np.asarray(shares) == pytest.approx(np.array(expected))
        # Cells meet half way between the observed steps 1, 5 and 20; the first row is at the top.
        assert axes.collections[0].get_coordinates()[0, :, 0].tolist() == [-1, 3, 12.5, 27.5]
        assert axes.get_ylim() == (1.5, -0.5)
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["head", "conv1"]
    assert "%" in bar.get_ylabel() and panels[0].collections[0].get_clim() == (0, 100)
    assert panels[0].get_ylabel().split() == ["input", "←", "backward", "order", "←", "loss"]


def test_the_colours_are_spread_where_little_is_flushed(detection: Experiment) -> None:
    mesh = plotting.flushed_map(detection, "weight_gradient").axes[0].collections[0]
    assert mesh.get_array().max() == 100 * (350 + 20) / 800 and mesh.get_clim() == (0, 50)


def test_a_tensor_that_arrived_all_zero_is_dark_and_explained(detection: Experiment, tmp_path: Path) -> None:
    assert plotting.flushed_map(detection).get_supxlabel() == ""
    folder = write_scale_results(tmp_path, seeds=1)
    counters = {
        "role": "activation_gradient",
        "scale": 1.0,
        "elements": 8,
        "subnormal": 0,
        "overflow": 0,
        "nonfinite": 0,
    }
    tensors = [
        counters | {"tensor": "head", "zeros": 0, "flushed": 8},
        counters | {"tensor": "conv1", "zeros": 8, "flushed": 0},
    ]
    step = {"step": 1, "loss": 1.0, "metric": None, "scale": 1.0, "skipped": False, "tensors": tensors}
    write_json_lines(folder / "fp16_s1/seed0/metrics.jsonl", [step])
    figure = plotting.flushed_map(read_experiment(folder))
    shares = figure.axes[1].collections[0].get_array()
    assert shares.mask.tolist() == [[False], [True]] and shares[0, 0] == 100
    assert figure.get_supxlabel().startswith("Hatched on dark: flushed nearer the loss")


def test_what_was_lost_nearer_the_loss_is_hatched(tmp_path: Path) -> None:
    """Where few of FP32's elements arrive, a small share is no good news."""
    folder = write_scale_results(tmp_path, DETECTION[:2], seeds=1)
    for arm, zeros in (("fp32", (0, 0, 0)), ("fp16_s1", (0, 89, 91))):
        tensors = [{"tensor": f"layer{k}", "role": "activation_gradient", "scale": 1.0, "elements": 100, "zeros": zero,
                    "flushed": 5, "subnormal": 0, "overflow": 0, "nonfinite": 0}
                   for k, zero in enumerate(zeros)]  # fmt: skip
        steps = [{"step": k, "loss": 1.0, "metric": None, "scale": 1.0, "skipped": False} for k in (1, 3, 5)]
        steps = [step | {"tensors": tensors} for step in steps]
        write_json_lines(folder / arm / "seed0/metrics.jsonl", steps)
    figure = plotting.flushed_map(read_experiment(folder))
    assert [len(axes.patches) for axes in figure.axes[:2]] == [0, 1]
    (hatched,) = figure.axes[1].patches
    assert (hatched.get_hatch(), hatched.get_xy(), hatched.get_width(), hatched.get_height()) == (
        "////",
        (0, 1.5),
        6,
        1,
    )
    assert figure.get_supxlabel().startswith("Hatched on dark: flushed nearer the loss")


def test_many_tensors_stay_legible(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path, DETECTION[:3], seeds=1)
    for arm in ("fp32", "fp16_s1", "fp16_s8"):
        tensors = [{"tensor": f"layer{k}", "role": "activation_gradient", "scale": 1.0, "elements": 9, "zeros": 0,
                    "flushed": k % 9, "subnormal": 0, "overflow": 0, "nonfinite": 0} for k in range(100)]  # fmt: skip
        step = {"loss": 1.0, "metric": None, "scale": 1.0, "skipped": False, "tensors": tensors}
        write_json_lines(folder / arm / "seed0/metrics.jsonl", [{"step": k} | step for k in range(1, 301)])
    figure = plotting.flushed_map(read_experiment(folder))
    figure.draw_without_rendering()
    labels = figure.axes[0].get_yticklabels()
    assert labels[0].get_text() == "layer0" and 25 <= len(labels) <= 40
    assert overlaps(labels) == []
    assert figure.axes[0].collections[0].get_array().shape == (100, 300)


def test_nothing_counted_nothing_drawn(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path, DETECTION[:2], seeds=1)
    for arm in ("fp32", "fp16_s1"):
        step = {"step": 1, "loss": 1.0, "metric": None, "scale": 1.0, "skipped": False}
        write_json_lines(folder / arm / "seed0/metrics.jsonl", [step])
    assert plotting.flushed_map(read_experiment(folder)) is None


def test_predictions_are_drawn_beside_what_was_counted(detection: Experiment) -> None:
    panels = plotting.predicted_and_counted(detection).axes
    assert [axes.get_title("left") for axes in panels] == ["fp16_s1\nS = 1", "fp16_s8\nS = 8", "fp16_s64\nS = 64"]
    for axes in panels:
        rings = [line for line in axes.lines if line.get_marker() == "o" and line.get_markerfacecolor() == "white"]
        dots = [line for line in axes.lines if line.get_marker() == "o" and line.get_markerfacecolor() != "white"]
        assert [float(line.get_xdata()[0]) for line in rings] == [50, 50, 50, 50]
        assert [float(line.get_xdata()[0]) for line in dots] == [50, 25, 25, 25]
        assert [line.get_ydata()[0] for line in dots] == [0, 1, 2, 3] and axes.get_ylim() == (3.6, -0.6)
        assert [to_hex(line.get_color()) for line in dots] == [BLUE.lower(), AMBER.lower()] * 2
    assert [label.get_text() for label in panels[0].get_yticklabels()] == [tensor for tensor, _ in TENSORS]


def test_the_difference_is_explained_where_there_is_one(detection: Experiment, tmp_path: Path) -> None:
    note = plotting.predicted_and_counted(detection).get_supxlabel()
    assert note.startswith("12 of 16 counted shares are lower than predicted, 0 higher, the others agree.\n")
    assert "Further from the loss" in note and "exact zero" in note.replace("\n", " ")
    lines = [line | {"counted": line["predicted"] + 0.004} for line in predictions(("fp16_s1", 1.0))]
    agreeing = read_experiment(write_scale_results(tmp_path, predictions=lines))
    note = plotting.predicted_and_counted(agreeing).get_supxlabel()
    assert note == "0 of 4 counted shares are lower than predicted, 0 higher, the others agree."


def test_no_predictions_no_figure(experiment: Experiment) -> None:
    assert plotting.predicted_and_counted(experiment) is None
