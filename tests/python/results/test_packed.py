"""Packed records: the same experiment as from a folder per run, and a clear error for a damaged file."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from halfscope.report import write_report
from halfscope.results import Run, find_or_run, read_experiment, read_results, runs_frame
from halfscope.results.histogram import PER_BINADE
from recording.pack_results import pack_experiment
from synthetic import write_json_lines, write_results
from synthetic_scales import DETECTION, predictions, write_scale_results


def pack(experiment: Path) -> None:
    """Packs the folder in place, with its summary."""
    packed = experiment.with_name("packed")
    packed.mkdir()
    pack_experiment(experiment, packed)
    shutil.copy(experiment / "summary.json", packed)
    shutil.rmtree(experiment)
    packed.rename(experiment)


def keep_what_records_keep(experiment: Path) -> None:
    """Leaves of the steps the counters of the first one, of the histograms those of the first and the last step."""
    for run in experiment.glob("*/seed*"):
        first, *_ = read_lines(run / "metrics.jsonl")
        write_json_lines(run / "metrics.jsonl", [{"step": first["step"], "tensors": first["tensors"]}])
        lines = read_lines(run / "histograms.jsonl")
        ends = (lines[0]["step"], lines[-1]["step"])
        write_json_lines(run / "histograms.jsonl", [line for line in lines if line["step"] in ends])


def read_lines(path: Path) -> list[dict]:
    return list(map(json.loads, path.read_text().splitlines()))


def everything(run: Run) -> list[object]:
    """All that is read of a run later than its settings."""
    histograms = [
        (role, histogram.first_exponent, histogram.zeros, histogram.infinities, histogram.nans, histogram.format,
         *(getattr(histogram, name).tolist() for name in PER_BINADE))
        for role, histogram in run.histograms.items()
    ]  # fmt: skip
    seen: list[tuple] = []
    run.each_histogram(lambda step, role, tensor, scale, histogram: seen.append((step, role, tensor, scale)))
    frames = [frame.to_json() for frame in (run.steps, run.counters("tensors"), run.counters("updates"))]
    return [histograms, seen, frames, run.first_overflows, run.samples, run.final_scale, run.static_scale]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A loss-scale experiment with a folder per run, and the same packed; both with their reports."""
    folders = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("packed")
    for folder in folders:
        experiment = write_scale_results(folder, DETECTION, predictions=predictions(("fp16_s8", 8.0)))
        keep_what_records_keep(experiment)
        if folder is folders[1]:
            pack(experiment)
        write_report(folder)
    return folders


def test_a_packed_experiment_is_the_experiment(pair: tuple[Path, Path]) -> None:
    folder = pair[0] / "detection-loss-scale"
    in_folders = read_experiment(folder)
    runs = [everything(run) for runs in in_folders.runs.values() for run in runs]
    shutil.move(folder, aside := folder.with_name("aside"))
    shutil.copytree(pair[1] / "detection-loss-scale", folder)
    packed = read_experiment(folder)
    shutil.rmtree(folder)
    shutil.move(aside, folder)
    assert packed == in_folders and packed.unfinished == ()
    assert [run.seed for run in packed.runs["fp16_s8"]] == [0, 1]
    packed = read_experiment(pair[1] / "detection-loss-scale")
    assert [everything(run) for runs in packed.runs.values() for run in runs] == runs
    assert len(packed.runs["fp32"][0].counters("tensors")) == 4
    assert packed.runs["fp16_dynamic"][0].final_scale == 2.0**20  # from the run's summary
    assert runs_frame(pair[1]).drop(columns="folder").equals(runs_frame(pair[0]).drop(columns="folder"))


def test_the_report_and_the_figures_are_the_same(pair: tuple[Path, Path]) -> None:
    one, other = (
        {path.name: path.read_bytes() for path in (folder / "report.html", *(folder / "figures").iterdir())}
        for folder in pair
    )
    assert one == other
    assert {"detection-loss-scale_scale_window.svg", "detection-loss-scale_predictions.svg"} <= one.keys()
    assert not any("curves" in name for name in one)  # no steps are recorded


def test_packed_results_are_found_like_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(write_results(tmp_path, seeds=1, steps=10))
    assert [experiment.name for experiment in read_results(tmp_path)] == ["master-copy"]
    monkeypatch.setenv("HALFSCOPE_RESULTS", str(tmp_path))
    found = find_or_run("master-copy")
    assert found.histogram("fp32", "weight_gradient").elements > 0
    assert found.runs["fp32"][0].steps.empty and found.runs["fp32"][0].counters("updates").empty


def test_a_record_without_histograms_has_none(tmp_path: Path) -> None:
    experiment = write_results(tmp_path, seeds=1, steps=10)
    pack(experiment)
    (experiment / "histograms.jsonl.gz").unlink()
    assert read_experiment(experiment).runs["fp32"][0].histograms == {}


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A packed experiment that a test may damage."""
    experiment = write_results(tmp_path, seeds=1, steps=10)
    pack(experiment)
    return experiment


def test_runs_are_in_the_order_of_their_seeds(tmp_path: Path) -> None:
    experiment = write_results(tmp_path, seeds=3, steps=10)
    pack(experiment)
    head, *runs = read_lines(experiment / "runs.jsonl")
    write_json_lines(experiment / "runs.jsonl", [head, *reversed(runs)])
    found = read_experiment(experiment).runs
    assert {arm: [run.seed for run in runs] for arm, runs in found.items()} == {arm: [0, 1, 2] for arm in found}


def changed(**changes: object) -> Callable[[dict], object]:
    return lambda line: {**line, **changes}


def without(key: str) -> Callable[[dict], object]:
    return lambda line: {name: value for name, value in line.items() if name != key}


@pytest.mark.parametrize(
    ("number", "change", "says"),
    [
        (1, changed(format_version=2), "format_version 2 found, 1 expected"),
        (1, without("config"), "it lacks 'config'; a line has format_version, experiment, config"),
        (2, without("summary"), "it lacks 'summary'; a line has arm, seed, config, summary"),
        (2, without("arm"), "it lacks 'arm'; a line has arm, seed, config, summary"),
        (3, changed(seed="0"), 'seed is "0"; expected a whole number'),
        (3, changed(seed=True), "seed is true; expected a whole number"),
        (3, changed(arm=None), "arm is null; expected a text"),
        (3, changed(config=[1, 2]), "config is [1, 2]; expected an object"),
        (4, lambda line: [line["arm"]], 'expected an object with arm, seed, config, summary; found ["fp16_no_master"]'),
        (4, changed(summary={"seed": 0}), "format_version None found, 1 expected"),
        (4, changed(first_step={"step": 1}), "first_step: it lacks 'tensors'; a line has step, tensors"),
        (4, changed(loss_curve={"steps": []}), "loss_curve: it lacks 'loss'; a line has steps, loss"),
        (4, changed(zero_causes=[{}]), "zero_causes: it lacks 'step'; a line has step"),
        (4, changed(arm="fp32"), "an earlier line has arm fp32, seed 0 too; delete one"),
    ],
)
def test_a_damaged_line_is_named(packed: Path, number: int, change: Callable[[dict], object], says: str) -> None:
    path = packed / "runs.jsonl"
    lines: list = read_lines(path)
    lines[number - 1] = change(lines[number - 1])
    write_json_lines(path, lines)
    with pytest.raises(ValueError) as error:
        read_experiment(packed)
    assert str(error.value) == f"{path}:{number}: {says}"


@pytest.mark.parametrize(
    ("cut", "says"), [(1, ":5: the last line is truncated"), (40, ":5: the last line is truncated")]
)
def test_a_cut_line_is_named(packed: Path, cut: int, says: str) -> None:
    path = packed / "runs.jsonl"
    path.write_text(path.read_text()[:-cut])
    with pytest.raises(ValueError) as error:
        read_experiment(packed)
    assert str(error.value) == f"{path}{says}"


def test_an_empty_file_says_what_it_should_hold(packed: Path) -> None:
    path = packed / "runs.jsonl"
    path.write_text("")
    with pytest.raises(ValueError) as error:
        read_experiment(packed)
    assert str(error.value) == f"{path}: it is empty; its first line has format_version, experiment, config"


def test_an_arm_that_the_summary_does_not_have(packed: Path) -> None:
    path = packed / "runs.jsonl"
    write_json_lines(path, [line | {"arm": "new"} if line.get("arm") == "fp32" else line for line in read_lines(path)])
    with pytest.raises(ValueError) as error:
        read_experiment(packed)
    assert str(error.value) == f"{path}: summary.json has no arm new; halfscope report --save makes it anew"


def test_damaged_histograms_are_named(packed: Path) -> None:
    path = packed / "histograms.jsonl.gz"
    whole = path.read_bytes()

    def refusal() -> str:
        with pytest.raises(ValueError) as error:
            _ = read_experiment(packed).runs["fp32"][0].histograms
        return str(error.value)

    path.write_bytes(whole[:-20])
    assert refusal().startswith(f"{path}: no whole gzip file (") and refusal().endswith("record the results again")
    lines = gzip.decompress(whole).decode().splitlines()
    for number, line, says in (
        (2, lines[1][:-1], "not valid JSON"),
        (3, "[]", "expected an object with arm, seed; found []"),
        (1, lines[0].replace('"seed"', '"seat"'), "it lacks 'seed'; a line has arm, seed"),
        (
            1,
            lines[0].replace('"role"', '"roll"'),
            "expected an object with step, role, tensor and scale; role is",
        ),
    ):
        path.write_bytes(gzip.compress("\n".join([*lines[: number - 1], line, *lines[number:]]).encode()))
        assert refusal().startswith(f"{path}:{number}: {says}")


def test_the_recorded_experiments_are_read() -> None:
    recorded = read_results(Path(__file__).resolve().parents[3] / "experiments/recorded/cpu")
    assert len(recorded) >= 26
    for one in recorded:
        if "harm" not in one.summary:
            assert {arm.name: len(one.runs[arm.name]) for arm in one.arms} == {arm.name: arm.seeds for arm in one.arms}
    sweep = next(one for one in recorded if one.name == "scale-sweep")
    (copies,) = (one for one in recorded if one.name == "master-copy")
    assert copies.histogram("fp32", "weight_gradient").elements > 10_000
    assert sweep.arm("fp16_s8").baseline == "fp32" and sweep.arm("fp32").in_fp32
    frame = runs_frame(sweep.folder)
    assert isinstance(frame, pd.DataFrame)
    assert np.isclose(frame[frame["arm"] == "fp32"]["would_flush"].mean(), sweep.arm("fp32").flushed)
