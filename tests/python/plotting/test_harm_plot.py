"""The figure of predictors of harm, from a summary written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from halfscope import plotting
from halfscope.plotting.drawings import draw
from halfscope.results import Experiment, read_experiment
from synthetic import write_json

NAMES = (
    "flushed share", "worst flushed magnitude", "worst underflow error", "summed underflow error", "probed error",
)  # fmt: skip


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
    return {"harmful": 0.05, "tolerance": 0.2, "predictors": predictors, "trainings": trainings, "advice": []}


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


def windows_of(evidence: dict, use: int, seeds: list[list[bool]]) -> dict:
    """A task that is trained at 2^-1, 2^0, ...; by scale, whether each seed was harmed."""
    trainings = [
        {**training("cnn_adam", "fitted", 1.0, 0.1), "seed": seed, "scale_log2": place - 1, "harmed": harmed}
        for place, row in enumerate(seeds)
        for seed, harmed in enumerate(row)
    ]
    advice = {"task": "cnn_adam", "format": "e4m10", "use_log2": use, "enough_from_log2": 0, "overflow_beyond_log2": 2}
    return {"harm": evidence | {"trainings": trainings, "advice": [advice]}}


def test_windows_show_the_scales_at_which_most_seeds_are_unharmed(tmp_path: Path, evidence: dict) -> None:
    seeds = [[True, True, False], [True, False, False], [False] * 3, [True] * 3]  # 2^-1 to 2^2
    for use, right in ((-3, False), (0, True), (1, True), (2, False), (7, False)):
        summary = windows_of(evidence, use, seeds)
        axes = plotting.usable_windows(experiment_with(tmp_path / f"at{use}", summary)).axes[0]
        trained, usable, advised = axes.lines[:3]
        assert list(trained.get_xdata()) == [-1, 2] and list(usable.get_xdata()) == [0, 1]
        assert list(advised.get_xdata()) == [use] and (advised.get_marker() == "o") == right
        assert axes.get_yticklabels()[0].get_text() == "cnn adam, e4m10"


def test_windows_need_neighbouring_scales(tmp_path: Path, evidence: dict) -> None:
    summary = windows_of(evidence, 0, [[False], [False]])
    summary["harm"]["trainings"][1]["scale_log2"] = 1
    assert plotting.usable_windows(experiment_with(tmp_path / "gaps", summary)) is None
    assert plotting.usable_windows(experiment_with(tmp_path / "none", {})) is None
