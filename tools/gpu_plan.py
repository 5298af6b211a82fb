"""Which runs `gpu-check --results` makes: the arms of every experiment at the size of a GPU, and their commands."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import gpu_programs
from experiment_list import Entry, list_experiments

# How a GPU trains, as far as an experiment's arms can: tensors in 16 bits, products by cuBLAS. Arms that vary how
# products add up choose that themselves, and block formats and operations in several precisions are emulated.
EXECUTIONS = (("execution=native", "order=cublas"), ("execution=native",))


@dataclass(frozen=True)
class Request:
    """Request of a call with --results."""

    program: Path
    device: str  # cuda or cpu
    size: str
    out: Path
    record: Path
    seconds: float
    seeds: int = 3
    experiments: tuple[str, ...] = ()  # empty: all
    images: Path | None = None  # None: where Debian's packages put them
    text: Path | None = None
    settings: tuple[str, ...] = ()  # KEY=VALUE


@dataclass(frozen=True)
class Plan:
    """An experiment and its arms by the kind of data that they train on."""

    name: str
    arms: tuple[str, ...]
    text_arms: tuple[str, ...]
    seeds: int

    def only(self, arms: tuple[str, ...]) -> Plan:
        """This plan with these arms alone."""
        return replace(self, arms=arms, text_arms=tuple(arm for arm in self.text_arms if arm in arms))

    def runs(self, out: Path) -> list[Path]:
        return [out / self.name / arm / f"seed{seed}" for seed in range(self.seeds) for arm in self.arms]

    def left(self, out: Path) -> list[Path]:
        """Runs that are not finished."""
        return [run for run in self.runs(out) if not is_done(run)]

    def is_finished(self, out: Path) -> bool:
        """Whether all runs are done and the summary has them."""
        summary = out / self.name / "summary.json"
        if self.left(out) or not summary.exists():
            return False
        seeds = {line["arm"]: line["seeds"] for line in json.loads(summary.read_text(encoding="utf-8"))["arms"]}
        return all(seeds.get(arm, 0) >= self.seeds for arm in self.arms)


def is_done(run: Path) -> bool:
    status = run / "status"
    return status.exists() and status.read_text(encoding="utf-8").startswith("DONE")


def read_plans(request: Request) -> list[Plan]:
    try:
        listed = list_experiments(request.program, gpu_programs.environment())
    except ValueError as problem:
        gpu_programs.stop(str(problem))
    known = [entry.name for entry in listed]
    for name in request.experiments:
        if name not in known:
            gpu_programs.stop(f"no experiment '{name}'; there are {', '.join(known)}")
    return [
        Plan(entry.name, entry.full_arms, _text_arms(entry), request.seeds)
        for entry in listed
        if not request.experiments or entry.name in request.experiments
    ]


def _text_arms(entry: Entry) -> tuple[str, ...]:
    return tuple(arm for arm in entry.full_arms if entry.data_of[arm] == "text")


def link_data(request: Request) -> None:
    """Links the data that were given to fixed names in the folder of results: configs hold no path of this machine."""
    for name, path in (("images", request.images), ("text.txt", request.text)):
        link = request.out / "data" / name
        if path is None:
            continue
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(path.resolve())


def settings_of(request: Request, plan: Plan) -> list[str]:
    """KEY=VALUE, those of the request last: they win."""
    if request.device == "cpu":
        return list(request.settings)
    accepted = (list(execution) for execution in EXECUTIONS if _are_accepted(request, plan, execution))
    return [*next(accepted, []), *request.settings]


def _are_accepted(request: Request, plan: Plan, settings: Sequence[str]) -> bool:
    command = [str(request.program), "run", plan.name, "--arms", ",".join(plan.arms), "--list-runs"]
    command += [word for setting in (f"device={request.device}", *settings) for word in ("--set", setting)]
    return subprocess.run(command, capture_output=True, env=gpu_programs.environment()).returncode == 0


def commands(request: Request, plan: Plan) -> list[list[str]]:
    """One for arms that train on images, one for those that train on text; the last one writes the summary of both."""
    image_arms = tuple(arm for arm in plan.arms if arm not in plan.text_arms)
    settings = [word for setting in settings_of(request, plan) for word in ("--set", setting)]
    found = []
    for arms, given, name in (
        (image_arms, request.images, "data/images"),
        (plan.text_arms, request.text, "data/text.txt"),
    ):
        if not arms:
            continue
        command = [str(request.program), "run", plan.name, "--size", request.size, "--device", request.device]
        command += ["--arms", ",".join(arms), "--seeds", str(plan.seeds), "--out", ".", "--resume"]
        found.append([*command, *settings, *(["--data", name] if given else [])])
    return found
