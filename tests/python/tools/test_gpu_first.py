"""tools/gpu-check --first, --pack and --collect, rehearsed on the CPU at tiny sizes and with steps that do little."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import gpu_carry
import gpu_first
import gpu_steps
import parity_data
from gpu_first import First, Step, run_all, take_up
from gpu_first_plan import SANITIZED, SEEDS, TRAININGS
from gpu_plan import Request, read_plans
from gpu_steps import Check, Failed
from recording import headline, pages
from recording.source_tree import PROGRAM, ROOT

NEEDS_PROGRAM = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built")
FAILED, LEFT = 1, 5
ABOUT = {"device": "a GPU", "size": "full", "version": "1"}


class Bench:
    """A call of which `steps` are made up; each leaves a file for its archive."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, seconds: float = 100.0) -> None:
        self.folder, self.seconds, self.patch = folder, seconds, monkeypatch
        self.done: list[str] = []
        self.calls = 0

    def call(self, *steps: Step) -> tuple[int, dict[str, dict]]:
        self.calls += 1
        work, out = self.folder / f"work{self.calls}", self.folder / "out"
        (work / "runs").mkdir(parents=True)
        request = Request(Path("halfscope"), "cuda", "full", work / "runs", work / "recorded/gpu", self.seconds)
        first = First(Check({}, work, budget=self.seconds), request, {}, out, ABOUT)
        take_up(first)
        out.mkdir(exist_ok=True)
        self.first = first
        self.patch.setattr(gpu_first, "steps_of", lambda _: list(steps))
        self.done.clear()
        status = run_all(first)
        records = json.loads((out / "summary.json").read_text())["steps"]
        return status, {record["name"]: record for record in records}

    def step(self, name: str, group: str, seconds: float, body: Callable[[], str] | None = None) -> Step:
        def run() -> str:
            self.done.append(name)
            log = group if is_training else name
            (self.first.work / f"{log}.log").open("a").write(f"{name}\n")
            return body() if body else "well"

        is_training = group not in ("sanitizers", "captures", "timings")
        return Step(name, group, seconds, run, is_training)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


def noise(size: int) -> bytes:
    """Bytes that no archive makes shorter."""
    return random.Random(1).randbytes(size)


def fail() -> str:
    raise Failed("wrong bits")


def test_a_step_without_time_is_dropped_and_trainings_leave_the_checks_theirs(bench: Bench) -> None:
    # 100 s less 10 for the end; a quarter belongs to the checks.
    status, steps = bench.call(
        bench.step("a 1", "a", 45), bench.step("b 1", "b", 70), bench.step("c 1", "c", 60),
        bench.step("racecheck", "sanitizers", 70), bench.step("captures", "captures", 80),
    )  # fmt: skip
    assert status == LEFT
    assert bench.done == ["a 1", "c 1", "racecheck", "captures"]
    assert steps["b 1"]["status"] == "dropped"
    assert steps["b 1"]["detail"] in ("needs 70 s, 65 s are left", "needs 70 s, 64 s are left")
    assert {path.name for path in (bench.folder / "out").iterdir()} == {
        "summary.json", "a.tar.gz", "c.tar.gz", "sanitizers.tar.gz", "captures.tar.gz",
    }  # fmt: skip


def test_a_later_seed_is_estimated_by_the_one_before(bench: Bench) -> None:
    slow = bench.step("a 1", "a", 50, lambda: (time.sleep(0.3), "slow")[1])
    status, steps = bench.call(slow, bench.step("a 2", "a", 50))
    assert status == 0
    assert steps["a 1"]["estimate"] == 50 and 0.3 <= steps["a 2"]["estimate"] < 5


def test_a_failure_stops_no_other_step(bench: Bench) -> None:
    status, steps = bench.call(bench.step("a 1", "a", 1, fail), bench.step("bench", "timings", 1))
    assert status == FAILED
    assert (steps["a 1"]["status"], steps["a 1"]["detail"]) == ("failed", "wrong bits")
    assert steps["bench"]["status"] == "passed"


def test_a_step_has_a_multiple_of_its_estimate_and_no_more_than_is_left(bench: Bench) -> None:
    limits = {}

    def note(name: str) -> Callable[[], str]:
        return lambda: limits.setdefault(name, bench.first.check.deadline - time.monotonic()) and ""

    bench.call(*(bench.step(name, "timings", seconds, note(name))
                 for name, seconds in (("short", 1), ("middle", 20), ("long", 80))))  # fmt: skip
    assert limits["short"] == pytest.approx(15, abs=1)
    assert limits["middle"] == pytest.approx(60, abs=1)
    assert limits["long"] == pytest.approx(90, abs=1)


def test_a_second_call_goes_on_with_what_is_left(bench: Bench) -> None:
    steps = [bench.step("a 1", "a", 20), bench.step("a 2", "a", 20, fail), bench.step("bench", "timings", 200)]
    assert bench.call(*steps)[0] == FAILED
    bench.seconds = 300.0
    again = [bench.step("a 1", "a", 20), bench.step("a 2", "a", 20), bench.step("bench", "timings", 200)]
    status, records = bench.call(*again)
    assert status == 0 and bench.done == ["a 2", "bench"]
    assert list(records) == ["a 1", "a 2", "bench"] and records["a 2"]["status"] == "passed"
    # The second call had what the first one packed, and packed it again.
    with tarfile.open(bench.folder / "out/a.tar.gz") as archive:
        assert archive.extractfile("a.log").read() == b"a 1\na 2\na 2\n"


def test_captures_that_failed_are_made_again(bench: Bench) -> None:
    program = bench.folder / "halfscope_capture"
    program.write_text('#!/bin/sh\ntouch "$2/x.capture"; echo "40 sets equal"; exit "${status:-0}"\n')
    program.chmod(0o755)

    def capture() -> str:
        bench.first.check.programs["halfscope_capture"] = program
        return gpu_steps.run_captures(bench.first.check)

    bench.patch.setenv("status", "1")
    status, steps = bench.call(bench.step("captures", "captures", 10, capture))
    assert status == FAILED and "status 1" in steps["captures"]["detail"]
    bench.patch.setenv("status", "0")
    status, steps = bench.call(bench.step("captures", "captures", 10, capture))
    assert status == 0 and steps["captures"]["detail"] == "40 sets equal"


def test_results_of_something_else_are_left_alone(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.call(bench.step("a 1", "a", 1))
    for change, says in (
        ({"device": "another GPU"}, "has the device another GPU, not a GPU"),
        (None, "something else"),
    ):
        summary = bench.folder / "out/summary.json"
        if change:
            summary.write_text(json.dumps(json.loads(summary.read_text()) | change))
        else:
            summary.unlink()
        with pytest.raises(SystemExit):
            bench.call(bench.step("a 2", "a", 1))
        assert says in capsys.readouterr().err
    assert (bench.folder / "out/a.tar.gz").exists()


def test_runs_that_are_too_large_are_left_out_of_the_archive(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_first, "ARCHIVE_LIMIT", 5000)

    def train() -> str:
        for folder, size in (("runs/a/fp32/seed0", 8000), ("recorded/gpu/a", 1000)):
            path = bench.first.work / folder / "metrics.jsonl"
            path.parent.mkdir(parents=True)
            path.write_bytes(noise(size))
        (bench.first.work / "runs/a/fp32/seed0/state.safetensors").write_bytes(noise(100_000))
        return "trained"

    _, steps = bench.call(bench.step("a 1", "a", 1, train))
    assert "left out of the archive" in steps["a 1"]["detail"]
    with tarfile.open(bench.folder / "out/a.tar.gz") as archive:
        names = archive.getnames()
    assert "recorded/gpu/a/metrics.jsonl" in names and not any(name.startswith("runs") for name in names)


def test_the_plan_fits_eight_minutes_and_its_trainings_six() -> None:
    checks = gpu_first.CAPTURES + gpu_first.BENCH + gpu_first.TORCH + sum(case.seconds for case in SANITIZED)
    trainings = SEEDS * sum(training.seconds for training in TRAININGS)
    assert trainings <= 6 * 60
    assert trainings + checks + gpu_first.ENDING <= 8 * 60


@NEEDS_PROGRAM
def test_the_trainings_are_those_of_the_headline_and_of_the_claims(tmp_path: Path) -> None:
    names = tuple(training.experiment for training in TRAININGS)
    request = Request(PROGRAM, "cuda", "full", tmp_path, tmp_path, 1.0, experiments=names)
    known = {plan.name: plan.arms for plan in read_plans(request)}
    for training in TRAININGS:
        assert set(training.arms) <= set(known[training.experiment])
        command = [PROGRAM, "run", training.experiment, "--size", "full", "--arms", ",".join(training.arms)]
        for setting in (*training.settings, "device=cuda", "execution=native", "order=cublas"):
            command += ["--set", setting]
        subprocess.run([*command, "--list-runs"], check=True, capture_output=True)
    for line in headline.HEADLINES:
        arms = next(training.arms for training in TRAININGS if training.experiment == line.experiment)
        assert {headline.BASELINE, line.with_it, line.without_it} <= set(arms)


# --- the whole path, on the CPU


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pack with made-up data, and stand-ins of the programs that a rehearsal on the CPU does not start."""
    folder = tmp_path_factory.mktemp("packed")
    build = folder / "build"
    build.mkdir()
    (build / "halfscope").symlink_to(PROGRAM)
    for name in ("halfscope_cuda_tests", "halfscope_capture"):
        (build / name).write_text("#!/bin/sh\nexit 1\n")
        (build / name).chmod(0o755)
    parity_data.write_images(folder / "images", train=60, test=20)
    parity_data.write_text(folder / "text.txt", words=3000)
    file = folder / "pack.tar.xz"
    done = gpu_check("--pack", file, "--build", build, "--data", folder / "images", "--text", folder / "text.txt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{file}: ") and "of programs of " in done.stdout
    with tarfile.open(file) as archive:
        names = {entry.name for entry in archive if entry.isfile()}
    data = {"data/text.txt", *(f"data/images/{name}" for name in gpu_carry.SPLITS)}
    assert names == {"halfscope", "halfscope_cuda_tests", "halfscope_capture", *data}
    return file


def gpu_check(*words: str | Path) -> subprocess.CompletedProcess:
    command = [sys.executable, ROOT / "tools/gpu-check", *words]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=500)


def rehearse(packed: Path, out: Path, *words: str) -> subprocess.CompletedProcess:
    return gpu_check("--first", "--build", packed, "--out", out, "--device", "cpu", "--size", "smoke", *words)


@pytest.fixture(scope="module")
def rehearsed(packed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("rehearsed") / "out"
    done = rehearse(packed, out, "--seeds", "2", "--minutes", "8")
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@NEEDS_PROGRAM
def test_every_experiment_is_trained_recorded_and_packed(rehearsed: Path) -> None:
    steps = json.loads((rehearsed / "summary.json").read_text())["steps"]
    experiments = [training.experiment for training in TRAININGS]
    trainings = [f"{name} {seed}/2" for seed in (1, 2) for name in experiments]
    assert [step["name"] for step in steps] == [*trainings, "initcheck", "racecheck", "captures", "bench", "torch"]
    for step in steps:
        is_training = step["group"] in experiments
        assert step["status"] == ("passed" if is_training else "skipped"), step
        assert ("fp32 " in step["detail"]) == is_training
    files = list(rehearsed.iterdir())
    assert {path.name for path in files} == {"summary.json", *(f"{name}.tar.gz" for name in experiments)}
    assert all(path.stat().st_size < 16 << 20 for path in files)
    for training in TRAININGS:
        with tarfile.open(rehearsed / f"{training.experiment}.tar.gz") as archive:
            names = archive.getnames()
            record = f"recorded/cpu/{training.experiment}"
            summary = json.load(archive.extractfile(f"{record}/summary.json"))
        assert {line["arm"]: line["seeds"] for line in summary["arms"]} == dict.fromkeys(training.arms, 2)
        assert f"{record}/runs.jsonl" in names and f"runs/{training.experiment}/fp32/seed1/status" in names
        assert not any(name.endswith(".safetensors") for name in names)


@NEEDS_PROGRAM
def test_what_is_done_is_not_trained_again(packed: Path, rehearsed: Path) -> None:
    summary = json.loads((rehearsed / "summary.json").read_text())
    lost = summary["steps"].pop(7)
    assert lost["name"] == "batchnorm-reduction 2/2"
    (rehearsed / "summary.json").write_text(json.dumps(summary))
    done = rehearse(packed, rehearsed, "--seeds", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 steps, 7 done before" in done.stdout
    assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [
        "batchnorm-reduction", "initcheck", "racecheck", "captures", "bench", "torch",
    ]  # fmt: skip


@NEEDS_PROGRAM
def test_without_time_everything_is_dropped(packed: Path, tmp_path: Path) -> None:
    done = rehearse(packed, tmp_path / "out", "--minutes", "0.2")
    assert done.returncode == LEFT
    lines = done.stdout.splitlines()[1:]
    assert len(lines) == SEEDS * len(TRAININGS) + 5
    assert all(" dropped " in line or " skipped " in line for line in lines)


@NEEDS_PROGRAM
def test_records_come_back_into_the_tree(rehearsed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    monkeypatch.setattr(gpu_carry, "RECORDED", tmp_path)
    monkeypatch.setattr(gpu_carry, "write_pages", written.append)
    taken = gpu_carry.collect(rehearsed)
    assert taken == sorted(f"cpu/{training.experiment}" for training in TRAININGS)
    assert written == [pages.Sources(tmp_path)]
    assert all((tmp_path / record / "summary.json").exists() for record in taken)
    assert not list(tmp_path.rglob("seed*"))
    assert gpu_carry.collect(tmp_path) == [] and len(written) == 1


def test_wrong_requests_are_refused(tmp_path: Path) -> None:
    (tmp_path / "halfscope").write_text("")
    for words, says in (
        (("--first", "--results"), "--first and --results are different calls"),
        (("--first", "--minutes", "soon"), "invalid float value: 'soon'"),
        (("--pack", tmp_path / "new", "--build", tmp_path), "has no program halfscope"),
        (("--first", "--device", "cpu", "--build", tmp_path / "none"), "has no program halfscope"),
    ):
        done = gpu_check(*words)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and says in done.stderr
