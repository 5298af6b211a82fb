"""Ablations of a user's own training: policies, loss scales and seeds side by side."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from halfscope.old_words import without_old_arguments
from halfscope.report.page import write_report
from halfscope.reporting import Finding, Report, Reported
from halfscope.torch.ablate.table import AblationArm, table_text, verdict_text
from halfscope.torch.emulate.emulation import Emulation, check_model
from halfscope.torch.emulate.training import Options
from halfscope.torch.grad_scaler import GradScaler
from halfscope.torch.policy import Policy
from halfscope.torch.steps.optimizers import optimizers_of
from halfscope.torch.steps.records import Records, Sinks
from halfscope.torch.steps.run_folder import ExperimentWords, RunFolder, arm_line, write_definition, write_experiment
from halfscope.torch.steps.trainee import Trainee
from halfscope.torch.watch.watch import Watch, watch_into


@dataclass(frozen=True)
class TrainingRun:
    """Argument of a training function: a fresh model with its optimizer, and a scaler of the arm's loss scale."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    scaler: GradScaler
    seed: int
    log: Callable[[float | torch.Tensor], None] = field(repr=False)  # notes a step's loss, without the loss scale


Make = Callable[[], "tuple[torch.nn.Module, torch.optim.Optimizer]"]
Train = Callable[[TrainingRun], float]


@without_old_arguments
def ablate(
    make: Make,
    train: Train,
    policies: Iterable[str | Mapping[str, str]],
    *,
    loss_scale: Iterable[str | float] = ("dynamic",),
    seeds: int = 3,
    metric: str = "metric",
    lower_is_better: bool = True,
    order: str | None = None,
    exceptions: Mapping[str, Any] | None = None,
    every: int = 10,
    progress: Callable[[str], None] = print,
) -> Ablation:
    """Trains a model under every policy and loss scale, with every seed, and compares the results.

    make: returns a new model and its optimizer; torch.manual_seed(seed) is called before.
    train: trains `run.model` with `run.optimizer` and `run.scaler` (scale, step, update), may call `run.log(loss)`, and
        returns the metric of the result: a loss, an error, or with lower_is_better=False an accuracy.
    policies: as `emulate` has them. Under "fp32" there is one arm, without a loss scale.
    loss_scale: numbers, and names of loss scalers.
    metric: its name in the table.
    progress: is given a line for each training.

    A training that ends in an infinite or NaN metric has diverged; an exception is raised on. Raises ValueError for
    seeds < 1, no policy, and what `emulate` and GradScaler refuse, before anything is trained.
    """
    plan = _plan((Policy(given, order, exceptions or {}) for given in policies), list(loss_scale))
    if seeds < 1:
        raise ValueError(f"ablate: seeds={seeds}; give 1 or more")
    folder = tempfile.TemporaryDirectory(prefix="halfscope-ablation-")
    ablation = Ablation(folder, metric, lower_is_better)
    for arm in plan:
        for seed in range(seeds):
            found = _train_once(make, train, (arm, seed, every), Path(folder.name))
            progress(f"{arm.name}, seed {seed}: {metric} {found:.5g}")
        ablation.arms.append(arm)
    return ablation


def _plan(policies: Iterable[Policy], scales: list[str | float]) -> list[AblationArm]:
    arms: list[AblationArm] = []
    for policy in policies:
        for scale in scales if policy.base.rounds else [1.0]:
            GradScaler(scale)  # refuses what it does not know
            name = policy.name.replace("/", "_")
            label = f"s{scale:.10g}" if isinstance(scale, (int, float)) else str(scale)
            arms.append(AblationArm(name if not policy.base.rounds else f"{name}_{label}", policy, scale))
    if not arms:
        raise ValueError("ablate: give a policy, or several, and a loss scale")
    names = [arm.name for arm in arms]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"ablate: the arm {twice[0]} is given twice")
    return arms


class _ArmFolder(RunFolder):
    """Folder of one run among others: the experiment's summary is `Ablation`'s."""

    def finish_alone(self, steps: int, verdict: str) -> None:
        del steps, verdict


def _train_once(make: Make, train: Train, about: tuple[AblationArm, int, int], folder: Path) -> float:
    """Trains an arm with a seed and enters the result."""
    arm, seed, every = about
    torch.manual_seed(seed)
    model, optimizer = make()
    check_model(model, "ablate")
    trainee = Trainee(model, optimizers_of(optimizer, "ablate"), GradScaler(arm.scale))
    run_folder = _ArmFolder(folder / "ablation", arm.name, seed)
    records = Records(Sinks(run_folder, None))
    observed: Emulation | Watch
    if arm.policy.base.rounds:
        records.begin(_settings(arm, every))
        observed = Emulation(trainee, arm.policy, Options(seed, every=every), records)
    else:  # counts the FP32 arm's gradients that FP16 would flush, as `halfscope run` does
        observed = watch_into(Trainee(trainee.model, trainee.optimizers), every, run_folder)
    run = TrainingRun(model, optimizer, trainee.scaler, seed, observed.log)
    try:
        with observed:
            metric = float(train(run))
    except BaseException as error:
        records.fail(error)
        raise
    arm.add(metric, observed if isinstance(observed, Emulation) else None)
    if isinstance(observed, Emulation):
        records.finish_run(observed.steps, metric, observed.counts())
    else:
        run_folder.finish(observed.steps, metric)
    return metric


def _settings(arm: AblationArm, every: int) -> dict[str, Any]:
    settings: dict[str, Any] = {"policy": arm.policy.name, "loss_scale": arm.loss_scale, "every": every}
    settings["activation_gradient"] = arm.policy.base.activation_gradient
    format = arm.policy.histogram_format
    return settings if format == "fp16" else {**settings, "format": format}


class Ablation(Reported):
    """Result of `ablate`."""

    def __init__(self, folder: tempfile.TemporaryDirectory, metric: str, lower_is_better: bool) -> None:
        self.arms: list[AblationArm] = []
        self._folder, self._metric, self._lower_is_better = folder, metric, lower_is_better

    def __str__(self) -> str:
        return table_text(self.arms, self._metric)

    @property
    def report(self) -> Report:
        """Which arms end as FP32 does, a finding each; and the table."""
        words = verdict_text(self.arms, self._metric, self._lower_is_better)
        seeds = f"{max((len(arm.metrics) for arm in self.arms), default=0)} seeds"
        findings = [Finding("arm", line.rstrip("."), sure=seeds) for line in words.splitlines()]
        return Report("ablate", tuple(findings), text=words, table=str(self))

    def write(self, folder: Path | str) -> None:
        """Puts what `halfscope run` writes, and report.html, into a new folder.

        Raises ValueError where the folder exists.
        """
        target = Path(folder)
        if target.exists():
            raise ValueError(f"write: {str(target)!r} exists; give a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(Path(self._folder.name) / "ablation", target)
        words = ExperimentWords(
            "A PyTorch model in emulated formats", self._metric, str(self.verdict), self._lower_is_better
        )
        lines = [arm_line(arm.name, list(arm.metrics), arm.mean_lost_updates) for arm in self.arms]
        write_experiment(target, words, lines)
        write_definition(target, words, {arm.name: arm.settings() for arm in self.arms})
        print(write_report(target))
