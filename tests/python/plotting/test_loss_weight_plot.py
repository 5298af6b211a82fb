"""The figure of what FP16 loses by the weight of the loss."""

from __future__ import annotations

from pathlib import Path

import pytest

from halfscope import plotting
from halfscope.plotting.drawings import draw
from halfscope.results import Experiment, read_experiment
from halfscope.results.json_files import read_json
from halfscope.results.loss_weights import by_loss_weight, weight_note
from synthetic import write_json
from synthetic_scales import OBSERVED, ScaleArm, flushed, write_scale_results

WEIGHTS = {"fp32": 1, "a": 1, "b": 1 / 64, "c": 1 / 4096, "d": 1 / 4096}
ARMS = (
    ScaleArm("fp32", 0.80, "none"),
    ScaleArm("a", 0.79),
    ScaleArm("b", 0.75),
    ScaleArm("c", None),
    ScaleArm("d", 0.81, "8"),
)


def results(folder: Path, weights: dict[str, float], **summary: object) -> Experiment:
    experiment = write_scale_results(folder, ARMS, **summary)
    for arm, weight in weights.items():
        for path in (experiment / arm).glob("seed*/config.json"):
            write_json(path, read_json(path) | {"loss_weight": weight})
    return read_experiment(experiment)


def activation_share(scale: float) -> float:
    """Flushed share of the 800 non-zero elements of two tensors at each observed step."""
    return sum(flushed(scale, place, step) for place in (0, 2) for step in OBSERVED) / (2 * 800 * len(OBSERVED))


def test_a_series_has_each_weight_from_the_largest_down(tmp_path: Path) -> None:
    series = by_loss_weight(results(tmp_path, WEIGHTS))
    assert set(series) == {("detector", "1"), ("detector", "8")}
    unscaled = series["detector", "1"]
    assert [arm.weight for arm in unscaled] == [1, 1 / 64, 1 / 4096]
    assert [arm.behind for arm in unscaled] == [pytest.approx(0.01), pytest.approx(0.05), None]
    assert [arm.flushed for arm in unscaled] == [pytest.approx(activation_share(1))] * 3
    (scaled,) = series["detector", "8"]
    assert scaled.behind == pytest.approx(-0.01)
    assert scaled.flushed == pytest.approx(activation_share(8))


def test_behind_is_worse_where_lower_is_better(tmp_path: Path) -> None:
    series = by_loss_weight(results(tmp_path, WEIGHTS, lower_is_better=True))
    assert series["detector", "1"][1].behind == pytest.approx(-0.05)


def test_two_weights_make_no_curve(tmp_path: Path) -> None:
    experiment = results(tmp_path, WEIGHTS | {"b": 1})
    assert by_loss_weight(experiment) == {}
    assert plotting.loss_weight_curve(experiment) is None


def test_the_figure_draws_the_series_and_is_in_the_report(tmp_path: Path) -> None:
    experiment = results(tmp_path, WEIGHTS)
    figure = plotting.loss_weight_curve(experiment)
    assert figure is not None
    left, right = figure.axes
    line = next(line for line in left.lines if line.get_label() == "detector, S = 1")
    assert list(line.get_xdata()) == [0, 6]  # the arm that diverged has no mean
    assert list(line.get_ydata()) == [pytest.approx(0.01), pytest.approx(0.05)]
    assert list(right.lines[0].get_xdata()) == [0, 6, 12]
    assert right.lines[0].get_ydata()[2] == pytest.approx(100 * activation_share(1))
    assert [label.get_text() for label in left.get_xticklabels()] == ["1", "1/64", "1/4096"]
    assert "loss_weight_curve" in [drawing.name for drawing in draw(experiment)]


def test_every_figure_says_what_the_loss_is_multiplied_by(tmp_path: Path) -> None:
    shared = results(tmp_path / "shared", dict.fromkeys(WEIGHTS, 1 / 256))
    assert weight_note(shared) == "The loss is multiplied by 1/256."
    drawings = draw(shared)
    assert len(drawings) > 4
    assert [drawing.name for drawing in drawings if b"multiplied by 1/256" not in drawing.svg] == []

    own = results(tmp_path / "own", WEIGHTS)
    assert weight_note(own) == "The loss is multiplied by 1/64 in b; by 1/4096 in c, d."
    assert all(b"multiplied by 1/64 in b" in drawing.svg for drawing in draw(own))

    plain = results(tmp_path / "plain", dict.fromkeys(WEIGHTS, 1))
    assert weight_note(plain) == ""
    assert not any(b"multiplied" in drawing.svg for drawing in draw(plain))


def test_a_weight_of_many_arms_names_the_first(tmp_path: Path) -> None:
    experiment = results(tmp_path, {"fp32": 1} | dict.fromkeys("abcd", 1 / 8))
    assert weight_note(experiment) == "The loss is multiplied by 1/8 in a, b, c, d."
    experiment = results(tmp_path, dict.fromkeys(WEIGHTS, 1 / 8) | {"fp32": 3})
    assert weight_note(experiment) == "The loss is multiplied by 3 in fp32; by 1/8 in a, b, c, d."


def test_many_weights_stand_without_the_names_of_their_arms(tmp_path: Path) -> None:
    weights = {"fp32": 1, "a": 1 / 4, "b": 1 / 16, "c": 1 / 16, "d": 1 / 64}
    assert weight_note(results(tmp_path / "three", weights)) == (
        "The loss is multiplied by 1/4 in a; by 1/16 in b, c; by 1/64 in d."
    )
    four = results(tmp_path / "four", {**weights, "fp32": 3})
    assert weight_note(four) == "The loss is multiplied by 3, 1/4, 1/16 or 1/64 in 5 of 5 arms."
