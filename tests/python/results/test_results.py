"""Reading results: what is there, and a clear error for what is not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from halfscope.results import Experiment, read_experiment, read_results, runs_frame
from synthetic import write_json, write_results


def test_arms_and_runs(experiment: Experiment) -> None:
    assert [arm.name for arm in experiment.arms] == ["fp32", "fp16_mixed", "fp16_no_master", "fp16_unprotected"]
    assert [run.seed for run in experiment.runs["fp32"]] == [0, 1, 2]
    assert experiment.metric_label == "test accuracy (%)"
    assert experiment.arms[3].mean is None and experiment.arms[3].values == (None, None, None)


def test_steps(experiment: Experiment) -> None:
    diverged = experiment.runs["fp16_unprotected"][0]
    assert diverged.diverged_step == 300
    assert diverged.steps.index.tolist() == list(range(1, 301))
    assert np.isnan(diverged.steps["loss"].iloc[-1]) and np.isfinite(diverged.steps["loss"].iloc[-2])
    assert experiment.runs["fp16_mixed"][0].steps["scale"].unique().tolist() == [1024.0]


def test_counters(experiment: Experiment) -> None:
    updates = experiment.runs["fp32"][0].counters("updates")
    assert len(updates) == 2 * 60
    assert updates.iloc[0].to_dict() == {
        "step": 10, "tensor": "conv1.weight", "elements": 60, "nonzero": 40, "lost": 30, "applied_over_intended": 0.4,
    }  # fmt: skip


def test_fp32_reference_and_first_overflows(experiment: Experiment) -> None:
    reference = experiment.runs["fp32"][0].counters("fp32_reference").set_index(["step", "tensor"])
    assert reference.loc[(20, "conv1"), "relative_error"] == 2e-4
    assert np.isnan(reference.loc[(20, "conv1.weight"), "cosine"])
    assert experiment.runs["fp32"][0].first_overflows == {}
    (step, overflow), *more = experiment.runs["fp16_unprotected"][0].first_overflows.items()
    assert (step, overflow["tensor"], overflow["before"][0]["tensor"], more) == (300, "bn1.mean", "conv1", [])


def test_seed_ten_comes_after_seed_nine(tmp_path: Path) -> None:
    experiment = read_experiment(write_results(tmp_path, seeds=11, steps=10))
    assert [run.seed for run in experiment.runs["fp32"]] == list(range(11))


def test_results_folder_or_experiment_folder(results: Path) -> None:
    write_results(results, seeds=1, steps=10, name="batchnorm-reduction")
    assert [e.name for e in read_results(results)] == ["batchnorm-reduction", "master-copy"]
    assert [e.name for e in read_results(results / "master-copy")] == ["master-copy"]


def test_unfinished_runs_are_named_not_read(results: Path) -> None:
    (results / "master-copy/fp32/seed1/status").write_text("FAILED: killed\n")
    (results / "master-copy/fp32/seed1/summary.json").unlink()
    experiment = read_experiment(results / "master-copy")
    assert [run.seed for run in experiment.runs["fp32"]] == [0]
    assert experiment.unfinished == ("fp32, seed 1: FAILED: killed",)


def test_run_without_status_is_not_started(results: Path) -> None:
    (results / "master-copy/fp32/seed1/status").unlink()
    assert read_experiment(results / "master-copy").unfinished == ("fp32, seed 1: not started",)


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no results here; expected EXPERIMENT/summary.json"):
        read_results(tmp_path)


@pytest.mark.parametrize("file", ["summary.json", "fp32/seed0/summary.json", "fp32/seed0/config.json"])
def test_another_format_version(results: Path, file: str) -> None:
    path = results / "master-copy" / file
    write_json(path, json.loads(path.read_text()) | {"format_version": 2})
    with pytest.raises(ValueError) as error:
        read_results(results)
    assert str(error.value) == f"{path}: format_version 2 found, 1 expected"


@pytest.mark.parametrize("file", ["metrics.jsonl", "histograms.jsonl"])
@pytest.mark.parametrize("cut", [1, 30])
def test_truncated_last_line(results: Path, file: str, cut: int) -> None:
    path = results / "master-copy/fp32/seed0" / file
    text = path.read_text()
    path.write_text(text[:-cut])
    run = read_experiment(results / "master-copy").runs["fp32"][0]
    with pytest.raises(ValueError) as error:
        run.steps if file == "metrics.jsonl" else run.histograms
    assert str(error.value) == f"{path}:{len(text.splitlines())}: the last line is truncated"


def test_damaged_line_in_the_middle(results: Path) -> None:
    path = results / "master-copy/fp32/seed0/metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": \n')
    with pytest.raises(ValueError, match=r"metrics.jsonl:2: not valid JSON"):
        read_experiment(results / "master-copy").runs["fp32"][0].steps


def test_missing_file_is_named(results: Path) -> None:
    (results / "master-copy/fp32/seed0/environment.json").unlink()
    with pytest.raises(ValueError, match=r"fp32/seed0/environment.json: no such file"):
        read_results(results)


@pytest.mark.parametrize("key", ["unit", "metric", "arms"])
def test_summary_of_an_older_version(results: Path, key: str) -> None:
    path = results / "master-copy/summary.json"
    write_json(path, {name: value for name, value in json.loads(path.read_text()).items() if name != key})
    with pytest.raises(ValueError) as error:
        read_results(results)
    assert str(error.value) == f"{path}: it lacks '{key}'; an older version wrote it: run it again"


def test_arm_of_an_older_version(results: Path) -> None:
    path = results / "master-copy/summary.json"
    summary = json.loads(path.read_text())
    del summary["arms"][1]["lost_updates"]
    write_json(path, summary)
    with pytest.raises(ValueError, match="summary.json: it lacks 'lost_updates'"):
        read_results(results)


@pytest.mark.parametrize(
    ("loss_scale", "scale"), [("none", 1.0), ("1024", 1024.0), ("dynamic", None), ("megatron", None)]
)
def test_static_scale(results: Path, loss_scale: str, scale: float | None) -> None:
    path = results / "master-copy/fp32/seed0/config.json"
    write_json(path, json.loads(path.read_text()) | {"loss_scale": loss_scale})
    assert read_experiment(results / "master-copy").runs["fp32"][0].static_scale == scale


def test_folders_that_are_not_called_by_a_seed_are_no_runs(tmp_path: Path) -> None:
    folder = write_results(tmp_path, seeds=2, steps=10)
    for name in ("seedx", "seed1.old", "backup", "seed-1"):
        shutil.copytree(folder / "fp32/seed0", folder / "fp32" / name)
    experiment = read_experiment(folder)
    assert [run.seed for run in experiment.runs["fp32"]] == [0, 1]
    assert experiment.unfinished == ()


def test_runs_of_several_folders_are_one_frame_with_the_settings_that_differ(tmp_path: Path) -> None:
    one, other = (write_results(tmp_path / name, seeds=2, steps=10) for name in ("one", "other"))
    for path in other.rglob("config.json"):
        write_json(path, {**json.loads(path.read_text()), "learning_rate": 0.5})
    path = one / "fp32/seed0/summary.json"
    counts = {"nonzero": 8, "flushed": 4, "subnormal": 2, "overflow": 0}
    write_json(path, {**json.loads(path.read_text()), "gradients": counts})
    path = one / "fp16_mixed/seed0/summary.json"
    write_json(path, {**json.loads(path.read_text()), "gradients": counts | {"flushed": 1}})
    frame = runs_frame(one.parent, other)
    assert len(frame) == 2 * 4 * 2
    assert set(frame["folder"]) == {str(one.parent), str(other)}
    columns = list(frame.columns)
    assert columns[:4] == ["folder", "experiment", "arm", "seed"]
    assert "learning_rate" in columns and "experiment" not in columns[4:]
    assert set(frame.loc[frame["folder"] == str(other), "learning_rate"]) == {0.5}
    assert "batch" not in columns and "data" not in columns
    fp32 = frame[frame["arm"] == "fp32"].iloc[0]
    assert fp32["metric"] == read_experiment(one).runs["fp32"][0].summary["metric"]
    assert (fp32["would_flush"], fp32["subnormal"], fp32["overflow"]) == (0.5, 0.25, 0.0)
    assert np.isnan(fp32["flushed"])
    mixed = frame[frame["arm"] == "fp16_mixed"].iloc[0]
    assert (mixed["flushed"], np.isnan(mixed["would_flush"])) == (0.125, True)
    with pytest.raises(ValueError, match="no results here"):
        runs_frame(tmp_path / "none")


def test_settings_have_the_names_of_today_in_a_frame_of_runs(results: Path) -> None:
    keys = {"accumulate": "order", "reduce": "sum_order", "gradient_accumulator": "gradient_sum"}
    for path in results.rglob("config.json"):
        own = {key: f"{key} of {path.parts[-3]}" for key in keys}
        path.write_text(json.dumps(json.loads(path.read_text()) | own))
    frame = runs_frame(results)
    assert set(keys.values()) <= set(frame.columns) and not set(keys) & set(frame.columns)
    assert all(frame[new][0] == f"{old} of {frame['arm'][0]}" for old, new in keys.items())
    (run, *_) = read_experiment(results / "master-copy").runs["fp32"]
    assert run.settings["order"] == run.config["accumulate"] == "accumulate of fp32"
