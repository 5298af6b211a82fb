"""tools/gpu-check --results, rehearsed on the CPU at tiny sizes: the whole path, broken off and continued."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_results
import parity_data
from gpu_plan import Request, read_plans, settings_of
from halfscope.results import recorded_frame
from halfscope.results.packed import read_packed_runs
from recording.device_tables import device_section
from recording.source_tree import PROGRAM, ROOT
from synthetic_record import report_rows

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
LEFT = 5


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    parity_data.write_images(folder / "images", train=60, test=20)
    parity_data.write_text(folder / "text.txt", words=3000)
    return folder


def rehearse(data: Path, out: Path, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, ROOT / "tools/gpu-check", "--results", "--size", "smoke", "--device", "cpu"]
    command += ["--build", PROGRAM.parent, "--out", out, "--data", data / "images", "--text", data / "text.txt", *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500)


def records(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.glob("*/*/seed*/*.jsonl")}


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One seed of the master copy and of an experiment on both kinds of data, in one call."""
    out = tmp_path_factory.mktemp("whole") / "out"
    done = rehearse(data, out, "--experiments", "master-copy,negative-controls", "--seeds", "1", "--seconds", "400")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 experiments recorded" in done.stdout
    return out


def test_all_arms_are_run_and_recorded(whole: Path) -> None:
    listed = json.loads(
        subprocess.run([PROGRAM, "list", "experiments", "--json"], capture_output=True, check=True).stdout
    )
    planned = {entry["name"]: entry["full_arms"] for entry in listed["experiments"]}
    assert {"fp32", "fp16_mixed", "fp16_s1"} <= set(planned["master-copy"])
    summary = json.loads((whole / "gpu-check.json").read_text())
    assert (summary["size"], summary["device"]) == ("smoke", None)
    for experiment in summary["experiments"]:
        assert (experiment["left"], experiment["failure"]) == (0, None)
        assert sorted(arm["arm"] for arm in experiment["arms"]) == sorted(planned[experiment["name"]])
        assert all(arm["seconds_per_step"] > 0 for arm in experiment["arms"])
        rows = report_rows(whole / "recorded" / experiment["name"] / "report.txt")
        assert set(rows) == set(planned[experiment["name"]])


def test_a_record_is_small_and_names_nothing_of_this_machine(whole: Path) -> None:
    files = [path for path in (whole / "recorded").rglob("*") if path.is_file()]
    assert {path.name for path in files} == {
        "environment.json", "histograms.jsonl.gz", "report.txt", "runs.jsonl", "summary.json",
    }  # fmt: skip
    assert sum(path.stat().st_size for path in files) < 3_000_000
    folders = (str(whole), str(whole.parents[1]))
    texts = {path: gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in files}
    assert [path for path, text in texts.items() if any(folder.encode() in text for folder in folders)] == []
    runs = read_packed_runs(whole / "recorded/negative-controls")
    config = next(run.config for run in runs if (run.arm, run.seed) == ("language_model_fp32", 0))
    assert (config["data"], config["steps"]) == ("data/text.txt", 4)
    assert not list(whole.glob("*/*/seed*/checkpoint/*.safetensors"))


def test_a_call_that_runs_out_of_time_is_continued(data: Path, whole: Path, tmp_path: Path) -> None:
    words = ("--experiments", "master-copy", "--seeds", "1", "--seconds", "0.01")
    first = rehearse(data, tmp_path / "out", *words)
    assert first.returncode == LEFT, first.stdout + first.stderr
    assert "runs are left; call again" in first.stdout and "nothing was recorded" in first.stdout
    broken_off = tmp_path / "out/master-copy/fp32/seed0"
    assert (broken_off / "checkpoint/state.safetensors").exists() or (broken_off / "status").read_text() == "DONE\n"
    calls = 1
    while (done := rehearse(data, tmp_path / "out", *words)).returncode == LEFT:
        calls += 1
        assert calls <= 16  # four runs of two checkpoints, and the summary
    assert done.returncode == 0, done.stdout + done.stderr
    expected = {name: text for name, text in records(whole).items() if name.startswith("master-copy")}
    assert records(tmp_path / "out") == expected and len(expected) == 8


def test_what_is_done_is_not_run_again(data: Path, whole: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.glob("*/*/seed*/*")}
    done = rehearse(data, whole, "--experiments", "master-copy,negative-controls", "--seeds", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {path: path.stat().st_mtime_ns for path in whole.glob("*/*/seed*/*")} == before


def test_a_run_that_fails_stops_no_other_experiment(data: Path, tmp_path: Path) -> None:
    more_than_images = "batch=61"
    words = ("--experiments", "master-copy,softmax-reduction", "--seeds", "1", "--set", more_than_images)
    done = rehearse(data, tmp_path / "out", *words)
    assert done.returncode == 1
    summary = json.loads((tmp_path / "out/gpu-check.json").read_text())
    failed, good = summary["experiments"]
    assert "status 2" in failed["failure"] and "61" in failed["failure"] and failed["left"] == 4
    assert (good["failure"], good["left"]) == (None, 0)
    assert "1 experiments recorded" in done.stdout


def test_a_recorded_folder_is_a_column_in_notebooks_and_a_table_in_the_docs(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "recorded").mkdir()
    (tmp_path / "recorded/cpu").symlink_to(ROOT / "experiments/recorded/cpu")
    (tmp_path / "recorded/rehearsal").symlink_to(whole / "recorded")
    frame = recorded_frame("master-copy", tmp_path / "recorded")
    cpu, rehearsal, speed = frame.columns
    assert (cpu, rehearsal, speed) == (
        "test accuracy %, cpu", "test accuracy %, rehearsal", "ms/step, rehearsal",
    )  # fmt: skip
    row = report_rows(whole / "recorded/master-copy/report.txt")["fp16_s1"]
    assert frame[rehearsal]["fp16_s1"] == row["test accuracy %"]
    section = device_section(tmp_path / "recorded")
    assert "`experiments/recorded/rehearsal/master-copy/report.txt`" in section
    assert row["ms/step"] in section


def test_requests_that_are_wrong_are_refused(tmp_path: Path) -> None:
    for words, says in (
        (["--experiments", "nothing"], "no experiment 'nothing'; there are master-copy"),
        (["--size", "huge"], "invalid choice: 'huge'"),
        (["--seconds", "soon"], "invalid float value: 'soon'"),
    ):
        done = rehearse(tmp_path, tmp_path / "out", *words)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and says in done.stderr


def test_a_gpu_trains_natively_what_it_can(tmp_path: Path) -> None:
    request = Request(PROGRAM, "cuda", "small", tmp_path, tmp_path / "recorded", 1.0, settings=("steps=1",))
    settings = {plan.name: settings_of(request, plan) for plan in read_plans(request)}
    assert settings["master-copy"] == ["execution=native", "order=cublas", "steps=1"]
    assert settings["accumulation-error"] == ["execution=native", "steps=1"]
    assert settings["block-formats"] == settings["amp-levels"] == ["steps=1"]


def test_a_device_names_its_folder() -> None:
    assert gpu_results.slug("NVIDIA H200") == "nvidia-h200"
    assert gpu_results.slug("Tesla V100-SXM2-16GB") == "tesla-v100-sxm2-16gb"


def test_speed_and_memory_are_told_where_they_are_known() -> None:
    line = {"arm": "fp32", "mean": 0.5, "seconds_per_step": 0.0125, "peak_device_bytes": 3 * 2**20}
    assert gpu_results.words_of(line).split() == ["fp32", "0.5", "12.5", "ms/step", "3", "MiB"]
    silent = {"arm": "fp32", "mean": None, "seconds_per_step": None, "peak_device_bytes": None}
    assert gpu_results.words_of(silent).split() == ["fp32", "diverged"]
