"""Figures of the experiments after 2018, from smoke runs as the records pack them, and from numbers made by hand."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

from halfscope import plotting
from halfscope.plotting.after_2018 import CAUSES, NVIDIA, QUARTET
from halfscope.plotting.drawings import draw
from halfscope.results import Experiment, read_experiment
from halfscope.results.json_files import read_json
from recording.pack_results import record_results
from recording.source_tree import PROGRAM
from synthetic import write_json, write_json_lines
from synthetic_scales import ScaleArm, write_scale_results

needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")


def packed_smoke(folder: Path, name: str, *words: str) -> Experiment:
    """A smoke run of the experiment, packed as experiments/recorded has it."""
    text = folder / "text"
    text.write_text("in the beginning was the word and the word was with what was in the beginning " * 60)
    sizes = ("--size", "smoke", "--seeds", "1", "--threads", "1", "--data", text, "--set", "sequence_length=8")
    command = [PROGRAM, "run", name, *sizes, *words, "--out", folder / "results"]
    subprocess.run(command, check=True, capture_output=True)
    record_results(folder / "results", folder / "recorded", PROGRAM)
    return read_experiment(folder / "recorded" / name)


def made_by_hand(folder: Path, arms: dict[str, float] | None = None, **summary: object) -> Experiment:
    plans = [ScaleArm(name, 0.5) for name in arms or {"fp32": 0.0}]
    experiment = write_scale_results(folder, plans, **summary)
    if arms:
        path = experiment / "summary.json"
        whole = read_json(path)
        for line in whole["arms"]:
            line["values"] = [4 * (1 + arms[line["arm"]] / 100), 5 * (1 + arms[line["arm"]] / 100)]
        write_json(path, whole)
    return read_experiment(experiment)


def lines_of(figure: Figure | None, panel: int = 0) -> dict[str, list[float]]:
    assert figure is not None
    return {str(line.get_label()): list(line.get_ydata()) for line in figure.axes[panel].lines}


@needs_program
def test_zeros_of_a_packed_run_are_drawn_by_cause(tmp_path: Path) -> None:
    experiment = packed_smoke(tmp_path, "zero-gradients", "--arms", "bf16,mxfp4", "--set", "zero_causes_every=2")
    figure = plotting.causes_of_zeros(experiment)
    assert figure is not None
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["bf16", "mxfp4"]
    for axes in figure.axes:
        assert [area.get_label() for area in axes.collections] == list(CAUSES.values())
    causes = experiment.runs["mxfp4"][0].zero_causes
    assert list(causes.index) == [1, 2, 4]
    assert (causes[list(CAUSES)].sum(axis=1) == causes["zeros"]).all()
    assert {drawing.name for drawing in draw(experiment)} >= {"causes_of_zeros", "loss_curves", "scoreboard"}


@needs_program
def test_moments_and_losses_of_a_packed_run_are_drawn(tmp_path: Path) -> None:
    experiment = packed_smoke(tmp_path, "weights-without-master", "--arms", "fp32,nearest")
    formats = lines_of(plotting.mean_squares(experiment))
    truth = formats.pop("expected: $1 - 0.999^n$")
    assert truth[-1] == pytest.approx(1 - 0.999**3000)
    assert formats["bf16"][-1] == pytest.approx(1.238, abs=0.012)
    assert formats["bf16/stochastic"][-1] == pytest.approx(truth[-1], abs=0.005)
    bold = {label: line for label, line in lines_of(plotting.loss_curves(experiment)).items() if label[0] != "_"}
    assert list(bold) == ["fp32", "nearest"]
    for arm, line in bold.items():
        assert line == pytest.approx(list(experiment.runs[arm][0].loss_curve))
        assert len(line) == experiment.runs[arm][0].config["steps"]


def with_losses(folder: Path, losses: dict[str, list[float]]) -> Experiment:
    """An experiment whose arms have these losses in step 1, 2, ..."""
    experiment = write_scale_results(folder, [ScaleArm(name, 0.5) for name in losses], seeds=1)
    for arm, values in losses.items():
        steps = [{"step": i + 1, "loss": loss, "metric": None, "scale": 1.0, "skipped": False}
                 for i, loss in enumerate(values)]  # fmt: skip
        write_json_lines(experiment / arm / "seed0/metrics.jsonl", steps)
    return read_experiment(experiment)


def test_a_loss_that_blows_up_does_not_flatten_the_others(tmp_path: Path) -> None:
    figure = plotting.loss_curves(with_losses(tmp_path, {"fp32": [4.0, 3.0, 2.0], "fp8": [4.0, 90.0, 700.0]}))
    assert figure is not None
    assert figure.axes[0].get_ylim() == (0, pytest.approx(4.2))
    assert figure.axes[0].get_yscale() == "linear"


def test_losses_that_fall_by_decades_have_a_logarithmic_axis(tmp_path: Path) -> None:
    figure = plotting.loss_curves(with_losses(tmp_path, {"fp32": [4.0, 1e-2, 1e-6], "bf16": [4.0, 1e-2, 1e-3]}))
    assert figure is not None
    assert figure.axes[0].get_yscale() == "log"
    assert figure.axes[0].get_ylim() == (pytest.approx(5e-7), pytest.approx(4.2))


def test_errors_of_sums_have_a_line_per_tensor_core(tmp_path: Path) -> None:
    def row(model: str, terms: int, largest: float, bias: float) -> dict:
        return {"model": f"fp8_e4m3_tensor_core({model})", "terms": terms, "largest_error": largest, "bias": bias}

    rows = [row("hopper", 256, 1e-3, -2e-3), row("hopper", 4096, 6e-3, -6.6e-2), row("blackwell", 256, 0, 0),
            row("blackwell", 4096, 5e-7, -1e-7)]  # fmt: skip
    figure = plotting.sum_errors(made_by_hand(tmp_path, fp8_sums=rows))
    left, right = lines_of(figure), lines_of(figure, 1)
    assert left["hopper"] == [1e-3, 6e-3]
    assert pd.isna(left["blackwell"][0]) and left["blackwell"][1] == 5e-7
    assert [2e-3, 6.6e-2] in right.values()


def test_costs_are_in_their_order_beside_published_ones(tmp_path: Path) -> None:
    costs = {"fp32": 0.0, "mxfp4_forward": 3.0, "nvfp4_forward": 2.0, "recipe": 2.5, "mxfp4": 4.0}
    figure = plotting.fp4_costs(made_by_hand(tmp_path, costs))
    assert figure is not None
    (axes,) = figure.axes
    order = [label.get_text() for label in axes.get_yticklabels()]
    assert order == ["nvfp4_forward", "recipe", "mxfp4_forward", "mxfp4"]
    points = {str(line.get_label()): line for line in axes.lines}
    assert list(points["Quartet II, 30M weights"].get_xdata()) == [QUARTET[arm] for arm in order if arm in QUARTET]
    assert list(points["NVIDIA, 1T tokens"].get_ydata()) == [order.index(arm) for arm in order if arm in NVIDIA]
    means = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert means == [pytest.approx(costs[arm]) for arm in order]


def test_other_experiments_have_no_such_figures(tmp_path: Path) -> None:
    experiment = made_by_hand(tmp_path, {"fp32": 0.0, "nvfp4_forward": 1.0})
    for figure in (plotting.mean_squares, plotting.fp4_costs, plotting.causes_of_zeros, plotting.sum_errors):
        assert figure(experiment) is None
