"""The first minutes on a GPU in a prepared order: trainings, which are recorded, sanitizers, captures, timings.

Each step has an estimate of its seconds. A step is dropped if its estimate is longer than the time left, and stopped if
it takes far longer than that. Its results are packed into the output folder before the next step begins, so that they
survive whatever becomes of the machine. A call that finds such a folder goes on with the steps that it lacks.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import gpu_carry
import gpu_device
import gpu_programs
import gpu_results
import gpu_steps
from gpu_first_plan import BENCH, CAPTURES, SANITIZED, TORCH, TRAININGS, Sanitized, Training
from gpu_plan import Plan, Request, commands, link_data, read_plans
from gpu_steps import Check, Skipped
from recording.pack_results import record_results

PROGRAMS = ("halfscope", "halfscope_cuda_tests", "halfscope_capture")
CHECKS_SHARE = 0.25  # share of the time that trainings leave to the steps behind them
ENDING = 10.0  # seconds kept for the last step's archive
PATIENCE, LEAST_LIMIT = 3.0, 15.0  # a step is stopped after this many times its estimate, or as many seconds
ARCHIVE_LIMIT = 16 << 20  # bytes
DONE, FAILED, LEFT = 0, 1, 5  # exit statuses


@dataclass(frozen=True)
class Step:
    name: str
    group: str  # its archive is GROUP.tar.gz
    seconds: float  # estimate
    body: Callable[[], str]
    is_training: bool = False


@dataclass
class First:
    """A call in progress: `work` has what the archives in `out` hold."""

    check: Check  # its `out` is `work`
    request: Request  # its `out` is work/runs
    plans: dict[str, Plan]
    out: Path
    about: dict
    earlier: list[dict] = field(default_factory=list)  # steps that an earlier call passed

    @property
    def work(self) -> Path:
        return self.check.out

    def records(self) -> list[dict]:
        return [*self.earlier, *self.check.steps]

    def is_done(self, step: Step) -> bool:
        return any(record["name"] == step.name for record in self.earlier)

    def estimate(self, step: Step) -> float:
        """As long as an earlier step of the group took, where one of the same training did."""
        took = [record["seconds"] for record in self.records() if record["group"] == step.group and record["ran"]]
        return took[-1] if step.is_training and took else step.seconds


def settings_of(request: Request, training: Training) -> tuple[str, ...]:
    return (*training.settings, *request.settings) if request.size == "full" else request.settings


def train(first: First, training: Training, seeds: int) -> str:
    """Seeds 0 to `seeds` - 1 of the arms, of which those that are done are kept; records them."""
    name = training.experiment
    request = replace(first.request, settings=settings_of(first.request, training))
    plan = replace(first.plans[name].only(training.arms), seeds=seeds)
    for command in commands(request, plan):
        first.check.run(name, *command, into=request.out)
    gpu_results.remove_checkpoints(gpu_results.Results(request, [plan]))
    record_results(request.out, request.record, program=request.program, names=[name])
    return "; ".join(" ".join(gpu_results.words_of(line).split()) for line in gpu_results.arm_lines(request, plan))


def sanitize(first: First, case: Sanitized) -> str:
    need_device(first)
    return gpu_steps.run_sanitizer(first.check, case.tool, case.tests)


def on_device(first: First, body: Callable[[Check], str]) -> str:
    need_device(first)
    return body(first.check)


def time_cnn(check: Check) -> str:
    return gpu_steps.run_torch(check, "--networks", "cnn")


def need_device(first: First) -> None:
    if first.request.device != "cuda":
        raise Skipped("a rehearsal on the CPU has no device")


def steps_of(first: First) -> list[Step]:
    """Trainings seed by seed, so that every experiment has one before any has two; then the checks."""
    trainings = [
        Step(f"{training.experiment} {seeds}/{first.request.seeds}", training.experiment, training.seconds,
             partial(train, first, training, seeds), is_training=True)
        for seeds in range(1, first.request.seeds + 1) for training in TRAININGS
    ]  # fmt: skip
    sanitizers = [Step(case.tool, "sanitizers", case.seconds, partial(sanitize, first, case)) for case in SANITIZED]
    return [
        *trainings, *sanitizers,
        Step("captures", "captures", CAPTURES, partial(on_device, first, gpu_steps.run_captures)),
        Step("bench", "timings", BENCH, partial(on_device, first, gpu_steps.run_bench)),
        Step("torch", "timings", TORCH, partial(on_device, first, time_cnn)),
    ]  # fmt: skip


def contents(first: First, group: str) -> list[tuple[Path, str]]:
    """Files and folders of a group's archive, with their names there."""
    names = {
        "sanitizers": ["initcheck.log", "racecheck.log"], "captures": ["captures", "captures.log"],
        "timings": ["bench.json", "bench.log", "torch.json", "torch.log"],
    }.get(group, [f"{group}.log", f"runs/{group}", f"recorded/{first.request.record.name}/{group}"])  # fmt: skip
    return [(first.work / name, name) for name in names if (first.work / name).exists()]


def write_archive(path: Path, files: list[tuple[Path, str]]) -> int:
    """Packs them without checkpoints, whole or not at all; the archive's bytes."""
    temporary = path.with_name(path.name + ".new")
    with tarfile.open(temporary, "w:gz", compresslevel=6) as archive:
        for file, name in files:
            archive.add(file, name, filter=lambda entry: None if entry.name.endswith(".safetensors") else entry)
    temporary.replace(path)
    return path.stat().st_size


def pack(first: First, group: str) -> str:
    """Packs the group's results; says so where its runs had to be left out."""
    files, path = contents(first, group), first.out / f"{group}.tar.gz"
    if not files or write_archive(path, files) <= ARCHIVE_LIMIT:
        return ""
    write_archive(path, [(file, name) for file, name in files if not name.startswith("runs/")])
    return "; its runs are more than 16 MiB and were left out of the archive, which has the record"


def write_summary(first: First) -> None:
    summary = first.about | {"steps": first.records()}
    temporary = first.out / "summary.json.new"
    temporary.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    temporary.replace(first.out / "summary.json")


def take_up(first: First) -> None:
    """Unpacks what an earlier call left in the output folder. Ends the program where that is of something else."""
    summary = first.out / "summary.json"
    if not summary.exists():
        if first.out.exists() and any(first.out.iterdir()):
            gpu_programs.stop(f"{first.out} holds something else than results of --first; give another --out")
        return
    known = json.loads(summary.read_text(encoding="utf-8"))
    for key, value in first.about.items():
        if known.get(key) != value:
            gpu_programs.stop(f"{first.out} has the {key} {known.get(key)}, not {value}; give another --out")
    for archive in sorted(first.out.glob("*.tar.gz")):
        gpu_carry.extract(archive, first.work)
    first.earlier = [record for record in known["steps"] if record["status"] == "passed"]


def run_step(first: First, step: Step, time_left: float) -> None:
    estimate = first.estimate(step)
    if time_left < estimate:
        detail = f"needs {estimate:.0f} s, {max(time_left, 0):.0f} s are left"
        gpu_steps.note_step(first.check, step.name, "dropped", 0, detail)
    else:
        limit = min(time_left, max(LEAST_LIMIT, PATIENCE * estimate))
        gpu_steps.run_step(first.check, step.name, limit, lambda _: step.body())
    record = first.check.steps[-1]
    record |= {"group": step.group, "estimate": round(estimate, 1), "ran": record["status"] in ("passed", "timed_out")}
    if record["status"] != "dropped":
        record["detail"] += pack(first, step.group)
    write_summary(first)


def run_all(first: First) -> int:
    steps = [step for step in steps_of(first) if not first.is_done(step)]
    total, minutes = sum(first.estimate(step) for step in steps), first.check.budget / 60
    print(f"{len(steps)} steps, {len(first.earlier)} done before; by the estimates {total / 60:.1f} of "
          f"{minutes:.1f} minutes", flush=True)  # fmt: skip
    write_summary(first)
    checks = sum(step.seconds for step in steps if not step.is_training)
    reserve = min(checks, CHECKS_SHARE * first.check.budget)
    for step in steps:
        run_step(first, step, first.check.left() - ENDING - (reserve if step.is_training else 0))
    statuses = [record["status"] for record in first.check.steps]
    if "failed" in statuses:
        return FAILED
    return LEFT if "dropped" in statuses or "timed_out" in statuses else DONE


def run_first(request: Request, programs: dict[str, Path], device: gpu_device.CudaDevice | None) -> int:
    """The exit status: 0 all is done, 1 a step failed, 5 steps are left.

    request: its `out` takes the archives, its `seconds` are those of all steps.
    """
    out = request.out
    with tempfile.TemporaryDirectory(prefix="gpu-first-") as folder:
        work = Path(folder)
        name = gpu_results.slug(device.name) if device else request.device
        inner = replace(request, out=work / "runs", record=work / "recorded" / name)
        inner.out.mkdir()
        about = {
            "device": device.name if device else request.device, "size": request.size,
            "version": gpu_programs.version(programs["halfscope"]),
        }  # fmt: skip
        first = First(Check(programs, work, budget=request.seconds), inner, {}, out, about)
        take_up(first)
        out.mkdir(parents=True, exist_ok=True)
        link_data(inner)
        chosen = replace(inner, experiments=tuple(training.experiment for training in TRAININGS))
        first.plans = {plan.name: plan for plan in read_plans(chosen)}
        return run_all(first)
