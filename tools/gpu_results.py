"""The paper's tables on this machine: trains the arms of every experiment, minutes per call, and records what is done.

A call that runs out of time stops the run in progress at a checkpoint; the next one with the same --out goes on there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import gpu_programs
from gpu_plan import Plan, Request, commands, is_done, link_data, read_plans

sys.path.insert(0, str(gpu_programs.ROOT / "lib/python"))
from recording.pack_results import folder_size, record_results
from recording.pages import Sources, write_pages
from recording.source_tree import RECORDED

GRACE = 30.0  # seconds that a run in progress has to come to its next checkpoint when time is up
DONE, FAILED, LEFT = 0, 1, 5  # exit statuses


class OutOfTime(Exception):
    """A run was stopped, to be continued by the next call."""


@dataclass
class Results:
    """A call in progress."""

    request: Request
    plans: list[Plan] = field(default_factory=list)
    started: float = field(default_factory=time.monotonic)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def deadline(self) -> float:
        """From here on nothing is begun, and the next checkpoint is where a run stops."""
        return self.started + self.request.seconds


def checkpoints(plan: Plan, out: Path) -> dict[str, int]:
    """When each was written."""
    return {str(path): path.stat().st_mtime_ns for path in (out / plan.name).glob("*/seed*/checkpoint/*.safetensors")}


def run_until(results: Results, plan: Plan, command: list[str]) -> None:
    """Runs the command to its end. Raises OutOfTime where it was stopped, RuntimeError where it failed."""
    out = results.request.out
    with (out / f"{plan.name}.log").open("a", encoding="utf-8") as log:
        log.write(f"$ {' '.join(command)}\n")
        log.flush()
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=out, env=gpu_programs.environment())
        try:
            status = _wait(process, results, plan)
        finally:
            process.kill()  # it may be at any line: files are written whole, and the next call starts at the checkpoint
            process.wait()
    if status is None:
        raise OutOfTime
    if status != 0:
        last = (out / f"{plan.name}.log").read_text(encoding="utf-8").strip().splitlines()[-1]
        raise RuntimeError(f"halfscope ended with status {status}: {last}")


def _wait(process: subprocess.Popen, results: Results, plan: Plan) -> int | None:
    """The process's status; None where time is up and a checkpoint has just been written, or none came in time."""
    try:
        return process.wait(timeout=max(results.deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired:
        before = checkpoints(plan, results.request.out)
    while time.monotonic() < results.deadline + GRACE:
        try:
            return process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            if checkpoints(plan, results.request.out) != before:
                return None
    return None


def run_plan(results: Results, plan: Plan) -> None:
    """Raises OutOfTime where runs are left."""
    if plan.is_finished(results.request.out):
        return
    for command in commands(results.request, plan):
        if time.monotonic() >= results.deadline:
            raise OutOfTime
        run_until(results, plan, command)


def arm_lines(request: Request, plan: Plan) -> list[dict]:
    """Speed and memory of every arm, from the experiment's summary; none where it has none yet."""
    summary = request.out / plan.name / "summary.json"
    if not summary.exists():
        return []
    keys = ("arm", "seeds", "mean", "low", "high", "diverged", "seconds_per_step", "peak_device_bytes")
    return [{key: arm.get(key) for key in keys} for arm in json.loads(summary.read_text(encoding="utf-8"))["arms"]]


def words_of(line: dict) -> str:
    mean, seconds, memory = line["mean"], line["seconds_per_step"], line["peak_device_bytes"]
    words = [f"  {line['arm']:<28}", "diverged" if mean is None else f"{mean:.4g}"]
    words += [f"{1000 * seconds:.1f} ms/step"] if seconds is not None else []
    words += [f"{memory / 2**20:.0f} MiB"] if memory is not None else []
    return "  ".join(words)


def write_summary(results: Results, about: dict) -> dict:
    """Finished and open runs, in OUT/gpu-check.json; a plan is open while one of its runs is."""
    request = results.request
    experiments = [
        {
            "name": plan.name, "runs": len(plan.runs(request.out)), "left": len(plan.left(request.out)),
            "failure": results.failures.get(plan.name), "arms": arm_lines(request, plan),
        }
        for plan in results.plans
    ]  # fmt: skip
    summary = {
        **about, "size": request.size, "seconds": round(time.monotonic() - results.started, 1),
        "experiments": experiments,
    }  # fmt: skip
    temporary = request.out / "gpu-check.json.new"
    temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    temporary.replace(request.out / "gpu-check.json")
    return summary


def remove_checkpoints(results: Results) -> None:
    """Deletes the checkpoints of finished runs: nobody goes on from them, and they are nearly all there is to carry."""
    for plan in results.plans:
        for run in plan.runs(results.request.out):
            if is_done(run):
                for path in (run / "checkpoint").glob("*.safetensors"):
                    path.unlink()


def record_finished(results: Results) -> str:
    """Records the experiments of which no run is left; says how large the record is."""
    request = results.request
    names = [plan.name for plan in results.plans if plan.is_finished(request.out)]
    if not names:
        return "nothing is finished, so that nothing was recorded"
    os.environ["LD_LIBRARY_PATH"] = gpu_programs.environment()["LD_LIBRARY_PATH"]
    record_results(request.out, request.record, program=request.program, names=names)
    if request.record.parent == RECORDED:
        write_pages(Sources(RECORDED))
    return f"{len(names)} experiments recorded in {request.record}: {folder_size(request.record) / 1e6:.1f} MB"


def slug(device: str) -> str:
    """'NVIDIA H200' as the name of a folder: nvidia-h200."""
    return re.sub(r"[^a-z0-9]+", "-", device.lower()).strip("-")


def run_results(request: Request, about: dict) -> int:
    """The exit status: 0 all is done, 1 a run failed, 5 time was up and runs are left."""
    plans = read_plans(request)
    request.out.mkdir(parents=True, exist_ok=True)
    link_data(request)
    results = Results(request, plans)
    for plan in results.plans:
        try:
            run_plan(results, plan)
        except OutOfTime:
            break
        except RuntimeError as problem:
            results.failures[plan.name] = str(problem)
    remove_checkpoints(results)
    summary = write_summary(results, about)
    for experiment in summary["experiments"]:
        finished = f"{experiment['runs'] - experiment['left']} of {experiment['runs']} runs"
        print(f"{experiment['name']:<28} {finished}  {experiment['failure'] or ''}".rstrip())
        print("".join(words_of(line) + "\n" for line in experiment["arms"]), end="")
    try:
        print(record_finished(results))
    except ValueError as problem:
        gpu_programs.stop(f"not recorded: {problem}", status=FAILED)
    if results.failures:
        return FAILED
    if all(plan.is_finished(request.out) for plan in results.plans):
        return DONE
    left = sum(experiment["left"] for experiment in summary["experiments"])
    print(f"{left} runs are left; call again with --out {request.out}")
    return LEFT
