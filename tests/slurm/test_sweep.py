"""A sweep as a job array of a real Slurm, with tasks that are requeued, beside the same sweep in one process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build/release/experiments/halfscope"
RECORDS = ("config.json", "metrics.jsonl", "histograms.jsonl", "checkpoint/state.safetensors")
STEPS = 600
SWEEP = f"""
[settings]
model = "gru_lm"
dataset = "kjv_text"
steps = {STEPS}
batch = 16
hidden_size = 64
embedding_size = 32
observe_every = 20
checkpoint_every = 20
[arm.bf16]
policy = "autocast_cpu"
[arm.mixed]
policy = "fp16_mixed"
loss_scale = "dynamic"
[arm.no_scale]
policy = "fp16_mixed"
[arm.fp32]
policy = "fp32"
"""

pytestmark = pytest.mark.slurm


class Sweep:
    """The experiment's file and its text in a folder of their own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        (folder / "sweep.toml").write_text(SWEEP)
        words = (f"{first}{second}" for first in "abcde" * 10 for second in "abcdefghijklmnopqrst")
        (folder / "text.txt").write_text(" ".join(words))

    def ask(self, *words: object) -> str:
        done = subprocess.run(
            [str(word) for word in words], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def submit(self, out: str) -> str:
        return self.ask(ROOT / "tools/slurm", *self.words(out), "--program", PROGRAM, "--cpus", 1)

    def words(self, out: str) -> tuple[object, ...]:
        return "sweep.toml", "--seeds", 3, "--data", "text.txt", "--out", out

    def report(self, out: str) -> str:
        return self.ask(PROGRAM, "report", f"{out}/sweep", "--reproducible").replace(f"{out}/", "")

    def runs(self, out: str) -> dict[str, Path]:
        return {f"{path.parent.name}/{path.name}": path for path in sorted((self.folder / out).glob("sweep/*/seed*"))}

    def status(self, run: Path) -> str:
        return (run / "status").read_text() if (run / "status").exists() else ""

    def tasks(self) -> dict[str, str]:
        """The state of each task that has not ended, by its name in the array."""
        lines = self.ask("squeue", "--array", "--noheader", "--format=%i %T").splitlines()
        return dict(line.split() for line in lines)


def wait_for(what: str, condition: Callable[[], object], seconds: float = 180) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


def requeue(sweep: Sweep, task: str) -> None:
    sweep.ask("scontrol", "requeue", task)


def end_of_time(sweep: Sweep, task: str) -> None:
    """As Slurm does two minutes before the time limit: a signal to the script alone, which then has itself requeued."""
    lines = sweep.ask("squeue", "--array", "--noheader", "--format=%i %A").splitlines()
    job = dict(line.split() for line in lines)[task]
    # The script is the first process of its step.
    script = next(line.split()[0] for line in sweep.ask("scontrol", "listpids", job).splitlines() if " batch " in line)
    os.kill(int(script), signal.SIGUSR1)


def interrupt(sweep: Sweep, job: str, task: int, how: Callable[[Sweep, str], None]) -> None:
    """Interrupts the task once its run has a checkpoint, and lets it begin again before two minutes are over."""
    listed = json.loads(sweep.ask(PROGRAM, "run", *sweep.words("slurm"), "--list-runs", "--json"))["runs"]
    run = sweep.folder / listed[task - 1]["folder"]
    wait_for(f"a checkpoint in {run}", (run / "checkpoint/state.safetensors").exists)
    assert sweep.status(run) == "RUNNING\n"
    how(sweep, f"{job}_{task}")
    wait_for(f"{run} to stop", lambda: sweep.status(run).startswith("STOPPED"))
    stopped = re.fullmatch(r"STOPPED after step (\d+): terminated, resumable\n", sweep.status(run))
    assert stopped and 20 <= int(stopped[1]) < STEPS
    wait_for("the task to be queued again", lambda: sweep.tasks()[f"{job}_{task}"] == "PENDING")
    sweep.ask("scontrol", "update", f"jobid={job}_{task}", "StartTime=now")


def counters(sweep: Sweep, out: str) -> dict[str, int]:
    """Sums over all runs."""
    sums: dict[str, int] = {}
    for run in sweep.runs(out).values():
        summary = json.loads((run / "summary.json").read_text())
        for key, count in {**summary["gradients"], "skipped": summary["skipped"], "steps": summary["steps"]}.items():
            sums[key] = sums.get(key, 0) + count
    return sums


def test_an_array_with_requeued_tasks_ends_as_one_process_does(slurm: dict[str, str], tmp_path: Path) -> None:
    sweep = Sweep(tmp_path, slurm)
    job = re.fullmatch(r"Submitted batch job (\d+)\n", sweep.submit("slurm"))[1]
    interrupt(sweep, job, 1, requeue)
    interrupt(sweep, job, 9, end_of_time)
    wait_for("a first result", lambda: any(sweep.status(run) == "DONE\n" for run in sweep.runs("slurm").values()))
    assert re.search(r"missing: \d+ of 12 runs: ", sweep.report("slurm"))
    wait_for("the end of the array", lambda: not sweep.tasks())
    assert {name: sweep.status(run) for name, run in sweep.runs("slurm").items()} == {
        f"{arm}/seed{seed}": "DONE\n" for arm in ("fp32", "mixed", "no_scale", "bf16") for seed in range(3)
    }
    logs = {path.name: path.read_text() for path in (tmp_path / "slurm/slurm").glob("*.log")}
    assert len(logs) == 12 and not any("Traceback" in text for text in logs.values())

    sweep.ask(PROGRAM, "run", *sweep.words("one"), "--jobs", 2)
    for name, run in sweep.runs("one").items():
        for file in RECORDS:
            assert (run / file).read_bytes() == (sweep.runs("slurm")[name] / file).read_bytes(), f"{name}/{file}"
    assert sweep.report("slurm") == sweep.report("one")
    assert counters(sweep, "slurm") == counters(sweep, "one")
    assert not list((tmp_path / "slurm").rglob("*run.lock*"))

    assert sweep.submit("slurm").startswith("all 12 runs are done: halfscope report ")
    assert not sweep.tasks()
