"""The figure of predictors of harm, from a summary written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from halfscope import plotting
from halfscope.plotting.drawings import draw
from halfscope.results import Experiment, read_experiment
from synthetic import write_json

NAMES = ("flushed share", "worst underflow error", "summed underflow error", "probed error")


def training(task: str, kind: str, ratio: float | None, value: float | None) -> dict:
    return {"task": task, "set": kind, "seed": 0, "scale_log2": 2, "loss_ratio": ratio, "harmed": False,
            "predictors": [0.5] * len(NAMES) + [value] * len(NAMES)}  # fmt: skip


def predictor(name: str, steps: str) -> dict:
    counts = {"right": 3, "total": 4}
    return {
        "name": name,
        "steps": steps,
        "threshold": 0.3,
        "low": 0.2,
        "high": 0.4,
        "fitted": counts,
        "held_out": counts,
    }


@pytest.fixture
def evidence() -> dict:
    trainings = [
        training("cnn_adam", "fitted", 1.01, 0.02),
        training("cnn_sgd", "fitted", 9.0, 0.9),
        training("cnn_sgd", "fitted", None, None),
        training("lstm_sgd", "held_out", 1.2, None),
    ]
    predictors = [predictor(name, steps) for steps in ("first", "all") for name in NAMES]
    return {"harmful": 0.05, "tolerance": 0.2, "predictors": predictors, "trainings": trainings}


def experiment_with(folder: Path, summary: dict) -> Experiment:
    folder.mkdir(parents=True)
    arms = {"arms": [], "metric": "train loss", "unit": "", "paper": "", "title": "", "verdict": "", "predictions": []}
    write_json(folder / "summary.json", {"format_version": 1, "experiment": folder.name, **arms, **summary})
    return read_experiment(folder)


def test_a_point_for_each_training_that_did_not_diverge(tmp_path: Path, evidence: dict) -> None:
    experiment = experiment_with(tmp_path / "advice-validity", {"harm": evidence})
    figure = plotting.harm_by_predictor(experiment)
    assert [axes.get_title("left") for axes in figure.axes] == [name.capitalize() for name in NAMES]
    for axes in figure.axes:
        points = {line.get_label(): (list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines[:2]}
        assert points["cnn"][0] == [0.02, 0.9] and points["cnn"][1] == pytest.approx([1, 100])  # at the edge
        assert points["lstm"][0] == [3.0] and points["lstm"][1] == pytest.approx([20])  # infinite: at the edge
        assert "right in 3 of 4" in axes.texts[0].get_text()
    assert [drawing.name for drawing in draw(experiment)] == ["harm_by_predictor"]


def test_no_evidence_no_figure(tmp_path: Path, evidence: dict) -> None:
    assert plotting.harm_by_predictor(experiment_with(tmp_path / "a", {})) is None
    assert plotting.harm_by_predictor(experiment_with(tmp_path / "b", {"harm": evidence | {"trainings": []}})) is None
