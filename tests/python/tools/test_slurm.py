"""tools/slurm: the script of an array, what is left to submit, and requests that cannot be met. No Slurm is needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
STATES = ["done", "new", "new", "unfinished", "done", "new"]


class Desk:
    """A folder with stand-ins of halfscope, which lists six runs, and of sbatch, which notes what it gets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = "my results"
        refuses = "[ ! -e refused ] || { cat refused >&2; exit 2; }"
        self.program = self.script("bin/halfscope", f'echo "$@" >>asked; {refuses}; echo "$(<runs.json)"')
        self.script("bin/sbatch", 'cp "$1" submitted; echo "Submitted batch job 17"')
        self.list_runs(STATES)

    def script(self, name: str, body: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
        return path

    def list_runs(self, states: list[str]) -> None:
        folder = f"{self.out}/sweep/a/seed"
        runs = [
            {"experiment": "sweep", "arm": "a", "seed": seed, "folder": f"{folder}{seed}", "state": state}
            for seed, state in enumerate(states)
        ]
        (self.folder / "runs.json").write_text(json.dumps({"runs": runs}))

    def slurm(self, *words: str, sbatch: bool = True) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder / 'bin'}:/usr/bin:/bin" if sbatch else "/nowhere"
        command = [sys.executable, str(ROOT / "tools/slurm"), *words, "--program", str(self.program)]
        environment = {**os.environ, "PATH": path}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("#SBATCH")]


def test_the_script_has_the_runs_that_are_left(desk: Desk) -> None:
    options = ("--dry-run", "--array-limit", "4", "--cpus", "3", "--sbatch=--time=1:00:00")
    shown = desk.slurm("sweep", "--set", "name=a b", *options)
    assert shown.returncode == 0, shown.stderr
    assert lines(shown.stdout) == [
        '#SBATCH --job-name="halfscope-sweep"',
        "#SBATCH --array=2-4,6%4",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --requeue",
        "#SBATCH --open-mode=append",
        f'#SBATCH --output="{desk.folder}/my results/slurm/sweep-%A_%a.log"',
        "#SBATCH --signal=B:USR1@120",
        "#SBATCH --time=1:00:00",
    ]
    assert "\nshards=6 " in shown.stdout and "'name=a b' --threads \"$SLURM_CPUS_PER_TASK\"" in shown.stdout
    assert (desk.folder / "asked").read_text() == "run sweep --set name=a b --list-runs --json\n"
    assert not (desk.folder / "my results").exists() and not (desk.folder / "submitted").exists()


def test_submitting(desk: Desk) -> None:
    done = desk.slurm("sweep", "--threads", "2")
    assert (done.returncode, done.stdout) == (0, "Submitted batch job 17\n")
    script = (desk.folder / "submitted").read_text()
    assert script == (desk.folder / "my results/slurm/sweep.sh").read_text()
    assert "SLURM_CPUS_PER_TASK" not in script
    desk.list_runs(["done"] * 6)
    (desk.folder / "submitted").unlink()
    again = desk.slurm("sweep")
    assert again.returncode == 0 and again.stdout.startswith("all 6 runs are done: halfscope report '")
    assert not (desk.folder / "submitted").exists()


def test_more_runs_than_an_array_may_have_tasks(desk: Desk) -> None:
    desk.list_runs(["done"] * 1000 + ["new"] * 5)
    shown = desk.slurm("sweep", "--dry-run")
    assert "#SBATCH --array=1-5%16\n" in shown.stdout and "\nshards=1000 " in shown.stdout


def run_script(desk: Desk, program: str) -> subprocess.Popen[str]:
    """The script as Slurm starts it, with a stand-in of halfscope that runs `program`."""
    desk.slurm("sweep")
    desk.script("bin/halfscope", program)
    desk.script("bin/scontrol", 'echo "scontrol $*"')
    environment = {**os.environ, "PATH": f"{desk.folder / 'bin'}:/usr/bin:/bin", "SLURM_JOB_ID": "18"}
    environment |= {"SLURM_ARRAY_TASK_ID": "4", "SLURM_CPUS_PER_TASK": "2"}
    return subprocess.Popen(
        ["bash", desk.folder / "my results/slurm/sweep.sh"], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("status", [0, 2, 3])
def test_a_task_trains_its_share_and_ends_with_its_status(desk: Desk, status: int) -> None:
    task = run_script(desk, f'echo "$@"; exit {status}')
    assert task.communicate(timeout=60)[0] == "run sweep --threads 2 --shard 4/6 --resume\n"
    assert task.returncode == status


WAITS = """exec /usr/bin/python3 -c '
import os, signal, sys

def stop(number, frame):
    print("stopped", flush=True)
    os._exit(3)

signal.signal(signal.SIGTERM, stop)
print("started", os.getpid(), flush=True)
while True:
    signal.pause()
'
"""


def test_before_the_end_of_its_time_a_task_is_stopped_and_requeued(desk: Desk) -> None:
    task = run_script(desk, WAITS)
    assert task.stdout.readline().startswith("started ")
    task.send_signal(signal.SIGUSR1)
    assert task.communicate(timeout=60)[0] == "stopped\nscontrol requeue 18\n"
    assert task.returncode == 3


def test_a_requeued_or_cancelled_task_waits_for_its_run(desk: Desk) -> None:
    task = run_script(desk, WAITS)
    child = int(task.stdout.readline().removeprefix("started "))
    task.send_signal(signal.SIGTERM)  # Slurm sends it to every process of the task
    os.kill(child, signal.SIGTERM)
    assert task.communicate(timeout=60)[0] == "stopped\n"
    assert task.returncode == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "give an experiment first"),
        (("--set", "a=b"), "give an experiment first"),
        (("sweep", "--shard", "1/2"), "--shard: the script gives that itself"),
        (("sweep", "--resume"), "--resume: the script"),
        (("sweep", "--array-limit", "0"), "--array-limit 0: give a number from 1"),
        (("sweep", "--array-limit", "x"), "--array-limit"),
        (("sweep", "--cpus", "-1"), "--cpus -1"),
        (("sweep", "--sbatch", "time=1"), "--sbatch=time=1: give an option of sbatch"),
        (("sweep", "--sbatch=--time=1\nrm x"), "give an option of sbatch"),
    ],
)
def test_requests_that_are_none(desk: Desk, words: tuple[str, ...], says: str) -> None:
    refused = desk.slurm(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert says in refused.stderr and refused.stderr.startswith("slurm: ")
    assert not (desk.folder / "submitted").exists()


def test_paths_that_sbatch_reads_otherwise(desk: Desk) -> None:
    desk.out = "50% %a"
    desk.list_runs(["new"])
    assert f'--output="{desk.folder}/50%% %%a/slurm/sweep-%A_%a.log"' in desk.slurm("sweep", "--dry-run").stdout
    for out in ('a"b', "a\nb"):
        desk.out = out
        desk.list_runs(["new"])
        refused = desk.slurm("sweep")
        assert refused.returncode == 2 and "sbatch reads no path with a quote" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1


def test_what_the_program_refuses(desk: Desk) -> None:
    (desk.folder / "refused").write_text("halfscope: unknown experiment 'swep'\n")
    refused = desk.slurm("swep")
    assert (refused.returncode, refused.stderr) == (2, "halfscope: unknown experiment 'swep'\n")


def test_other_settings_and_a_machine_without_slurm(desk: Desk) -> None:
    missing = desk.slurm("sweep", sbatch=False)
    assert missing.returncode == 2 and "sbatch is not installed; --dry-run" in missing.stderr
    assert not (desk.folder / "my results").exists()
    desk.list_runs(["done", "other_settings"])
    refused = desk.slurm("sweep")
    assert refused.returncode == 2 and "my results/sweep/a/seed1 holds a run with other settings" in refused.stderr
    desk.script("bin/sbatch", "echo no partition >&2; exit 1")
    desk.list_runs(["new"])
    assert desk.slurm("sweep").returncode == 2
