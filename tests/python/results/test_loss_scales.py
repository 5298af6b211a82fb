"""Loss scales read from results: the arms to compare, counted shares, the usable scales."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import halfscope
from halfscope.results import Experiment, Prediction, read_experiment
from halfscope.results.loss_scales import (
    advice,
    baseline,
    compares_scales,
    counted,
    good_arm,
    scale_series,
    shown_scale,
    static_scales,
)
from synthetic import bell, write_json
from synthetic_scales import CENTRES, DETECTION, OBSERVED, SWEEP, ScaleArm, flushed, predictions, write_scale_results


def with_means(folder: Path, **means: float) -> Experiment:
    """The detector's experiment, with other means for some arms."""
    arms = [ScaleArm(arm.name, means.get(arm.name, arm.mean), arm.scale) for arm in DETECTION]
    return read_experiment(write_scale_results(folder, arms, seeds=1))


def reconfigured(experiment: Experiment, arm: str, **settings: object) -> Experiment:
    """The experiment read again after a change of the arm's configuration."""
    for path in (experiment.folder / arm).glob("seed*/config.json"):
        write_json(path, json.loads(path.read_text()) | settings)
    return read_experiment(experiment.folder)


def test_baseline_and_static_scales(detection: Experiment) -> None:
    assert baseline(detection) == "fp32"
    assert list(static_scales(detection).items()) == [
        ("fp16_s1", 1), ("fp16_s8", 8), ("fp16_s64", 64), ("fp16_s1024", 1024),
    ]  # fmt: skip
    assert compares_scales(detection)


def test_a_grid_has_a_series_for_each_combination_of_the_other_settings(tmp_path: Path) -> None:
    arms = [
        ScaleArm(f"rate={rate}+scale={scale}", 0.5, scale) for rate in ("0.1", "0.01") for scale in ("8", "1", "64")
    ]
    grid = read_experiment(write_scale_results(tmp_path, [ScaleArm("fp32", 0.5, "none"), *arms], seeds=1))
    assert list(scale_series(grid)) == [""]
    for arm in arms:
        grid = reconfigured(grid, arm.name, learning_rate=float(arm.name[5:].partition("+")[0]))
    assert scale_series(grid) == {
        f"learning_rate={rate}": {f"rate={rate}+scale={scale:g}": scale for scale in (1.0, 8.0, 64.0)}
        for rate in ("0.1", "0.01")
    }


def test_the_skipping_arm_is_no_second_point_at_its_scale(tmp_path: Path) -> None:
    scales = static_scales(read_experiment(write_scale_results(tmp_path, SWEEP, seeds=1)))
    assert list(scales.values()) == [2.0**k for k in range(-4, 25)]
    assert "fp16_s262144_skip" not in scales


def test_precision_is_known_from_the_configuration_not_the_name(tmp_path: Path) -> None:
    arms = [ScaleArm("reference", 0.5, "none"), ScaleArm("fp32_sums", 0.5, "1024")]
    experiment = read_experiment(write_scale_results(tmp_path, arms, seeds=1))
    experiment = reconfigured(experiment, "reference", activation_gradient="fp32")
    assert baseline(experiment) == "reference"
    assert static_scales(experiment) == {"fp32_sums": 1024}
    assert not compares_scales(experiment)


def test_of_several_averaging_factors_the_one_with_the_smallest_gradients(tmp_path: Path) -> None:
    arms = [ScaleArm("fp32", 9.0, "none"), ScaleArm("fp32_x16", 9.0, "none"), ScaleArm("fp16_s1_x1", 9.0),
            ScaleArm("fp16_s1_x16", 9.0)]  # fmt: skip
    experiment = read_experiment(write_scale_results(tmp_path, arms, seeds=1))
    for arm, weight in (("fp32", 1.0), ("fp16_s1_x1", 1.0), ("fp32_x16", 1 / 16), ("fp16_s1_x16", 1 / 16)):
        experiment = reconfigured(experiment, arm, loss_weight=weight, activation_gradient=arm[:4])
    assert baseline(experiment) == "fp32_x16"
    assert list(static_scales(experiment)) == ["fp16_s1_x16"]


def test_the_summary_says_which_arms_are_as_good(detection: Experiment, tmp_path: Path) -> None:
    assert [arm.as_good for arm in detection.arms] == [None, False, True, True, True, True]
    experiment = with_means(tmp_path)
    path = experiment.folder / "summary.json"
    summary = json.loads(path.read_text())
    for line in summary["arms"]:
        line["as_good"] = line["arm"] == "fp16_s64"
    write_json(path, summary)
    assert good_arm(read_experiment(experiment.folder)) == "fp16_s64"
    for line in summary["arms"]:
        del line["as_good"]  # as in results of earlier versions
    write_json(path, summary)
    assert good_arm(read_experiment(experiment.folder)) is None


def test_good_arm_is_the_smallest_scale_that_is_as_good_where_one_is_needed(
    detection: Experiment, tmp_path: Path
) -> None:
    assert good_arm(detection) == "fp16_s8"
    assert shown_scale(detection) == 3
    assert good_arm(with_means(tmp_path / "a", fp16_s1=0.53)) == "fp16_s1024"
    none = with_means(tmp_path / "b", fp16_s8=0.1, fp16_s64=0.1, fp16_s1024=0.1)
    assert good_arm(none) is None
    largest = max(exponent for centre in CENTRES.values() for exponent, count in bell(centre, 3).items() if count)
    assert shown_scale(none) == 15 - largest  # nothing may reach 2^16


def test_counted_shares_are_of_the_nonzero_elements(detection: Experiment) -> None:
    activation = sum(flushed(8, place, step) for place in (0, 2) for step in OBSERVED)
    both = sum(flushed(8, place, step) for place in range(4) for step in OBSERVED)
    assert counted(detection, "fp16_s8", "activation_gradient")["flushed"] == pytest.approx(activation / (2 * 3 * 800))
    shares = counted(detection, "fp16_s8")
    assert shares["flushed"] == pytest.approx(both / (4 * 3 * 800))
    assert shares["subnormal"] == pytest.approx(80 / 800) and shares["overflow"] == 0


def test_advice_is_that_of_every_gradient_at_every_step(detection: Experiment) -> None:
    found = advice(detection, "fp32")
    steps: dict[str, list[halfscope.Histogram]] = {}
    for run in detection.runs["fp32"]:
        for line in (run.folder / "histograms.jsonl").read_text().splitlines():
            record = json.loads(line)
            if record["role"] in ("activation_gradient", "weight_gradient"):
                steps.setdefault(record["tensor"], []).append(halfscope.Histogram.from_record(record))
    assert found.joint_window_log2 == halfscope.advise_scale(steps).joint_window_log2
    low, high = found.joint_window_log2
    assert found.first_hurt and low < found.recommended_scale_log2 <= high - found.headroom
    assert advice(detection, "no such arm") is None and advice(detection, None) is None


def test_advice_is_of_gradients_without_their_scale(detection: Experiment, tmp_path: Path) -> None:
    scaled = read_experiment(write_scale_results(tmp_path, DETECTION, seeds=1))
    for path in (scaled.folder / "fp32").glob("seed*/histograms.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            record["scale"], record["first_exponent"] = 1024.0, record["first_exponent"] + 10
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    again = read_experiment(scaled.folder)
    assert advice(again, "fp32").joint_window_log2 == advice(detection, "fp32").joint_window_log2


def test_new_fields_of_the_summary(tmp_path: Path) -> None:
    lines = predictions(("fp16_s1", 1.0))
    experiment = read_experiment(write_scale_results(tmp_path, predictions=lines, lower_is_better=True))
    arm = experiment.arms[1]
    assert (arm.flushed, arm.subnormal, arm.overflow, arm.skipped) == (0.25, 0.125, 0.0, 0)
    assert experiment.arms[5].skipped == 3.5 and experiment.lower_is_better
    assert experiment.predictions[2] == Prediction("fp16_s1", 1.0, "conv1", "activation_gradient", 1000, 0.5, 0.25)


def test_older_results_lack_them(experiment: Experiment) -> None:
    assert experiment.arms[0].flushed is None and experiment.arms[0].skipped is None
    assert experiment.predictions == () and not experiment.lower_is_better
    assert not compares_scales(experiment)


@pytest.mark.parametrize(
    ("unit", "means", "digits"),
    [
        ("%", (80.7, 81.0), 2),
        ("", (0.53, 0.12), 3),
        ("", (313.3, 717.5), 1),
        ("", (0.34, 2.4), 3),
        ("", (0.3, 0.4, 900), 3),
    ],
)
def test_digits_suit_the_metric(tmp_path: Path, unit: str, means: tuple, digits: int) -> None:
    arms = [ScaleArm(f"fp16_s{place + 1}", mean) for place, mean in enumerate(means)]
    assert read_experiment(write_scale_results(tmp_path, arms, seeds=1, unit=unit)).digits == digits


def test_static_scale_of_a_run(detection: Experiment) -> None:
    found = {arm: runs[0].static_scale for arm, runs in detection.runs.items()}
    assert found["fp32"] == 1 and found["fp16_s64"] == 64 and found["fp16_dynamic"] is None
