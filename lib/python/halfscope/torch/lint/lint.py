"""`lint`: the numbers of a model and its optimizer that a format does not hold, and when each begins to hurt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch

from halfscope.reporting import Finding, Report
from halfscope.torch.lint.formats import LintFormats
from halfscope.torch.lint.module_rules import module_findings
from halfscope.torch.lint.numbers import CheckedNumber, check
from halfscope.torch.lint.optimizer_rules import optimizer_findings
from halfscope.torch.lint.table_rules import table_findings
from halfscope.torch.steps.optimizers import optimizers_of
from halfscope.torch.steps.trainee import check_module


class Lint(Report):
    """Result of `lint`: findings, each with the change to type, the reason, and how sure it is."""


@dataclass(frozen=True)
class _Counts:
    """Counts of a training, which a model does not have itself."""

    positions: int | None
    micro_batches: int
    loss_terms: int


def lint(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None = None,
    format: str | Mapping[str, str] | None = None,
    *,
    positions: int | None = None,
    micro_batches: int = 1,
    loss_terms: int = 1,
) -> Lint:
    """Looks for numbers that a format turns into zero, one or infinity, or that it cannot tell apart.

    No step is made: attributes of modules, constants and powers in the source of `forward`, buffers, weights and the
    optimizer's settings are read. A number that a module computes is not seen; `diagnose` runs a step. Each rank
    reads its own elements of a DTensor.

    format: "fp16", "bf16" or another one: of weights, buffers, gradients and optimizer state alike, as after
        `model.to(torch.bfloat16)`; "autocast" or "autocast_bf16": as within torch.autocast, which leaves these in FP32;
        or a policy as `emulate` has them. By default the 16-bit format that the weights have, else "autocast".
    positions: the length of the context; by default that of the model's configuration, else 2048.
    micro_batches: the gradients that are added up before a step.
    loss_terms: the number of elements that the loss is a mean of.

    Raises ValueError for an unknown format and for counts below 1; TypeError for what is no module, for float64, and
    for a compiled module.
    """
    check_module(model, "lint")
    for name, count in (("positions", positions), ("micro_batches", micro_batches), ("loss_terms", loss_terms)):
        if count is not None and count < 1:
            raise ValueError(f"lint: {name}={count}; give 1 or more")
    formats = LintFormats.of_model(model) if format is None else LintFormats.of(format)
    findings = tuple(_findings(model, optimizer, formats, _Counts(positions, micro_batches, loss_terms)))
    return Lint("lint", findings, _about(model, formats))


def _findings(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] | None,
    formats: LintFormats,
    counts: _Counts,
) -> Iterator[Finding]:
    for each in optimizers_of(() if optimizer is None else optimizer, "lint"):
        yield from optimizer_findings(each, formats)
    yield from module_findings(model, formats)
    yield from table_findings(model, formats, counts.positions)
    yield from _count_findings(formats, counts)


def _count_findings(formats: LintFormats, counts: _Counts) -> Iterator[Finding]:
    sure = "computed from the number that you gave"
    last = 2**formats.gradients.precision
    yield from check(
        CheckedNumber("count", "micro_batches", counts.micro_batches, f"micro-batch {last + 1}",
              "add gradients up in FP32, or at most {limit} of them: .grad has the format of the weights", sure),
        formats.gradients,
    )  # fmt: skip
    yield from check(
        CheckedNumber("largest_gradient", "1 / loss_terms", 1 / counts.loss_terms, "step 1",
              "scale the loss: torch.amp.GradScaler()", sure),
        formats.gradients,
    )  # fmt: skip
    yield from check(
        CheckedNumber("factor", "loss_terms", counts.loss_terms, "step 1",
              "take the mean in FP32: a sum divided by this count is 0 or NaN", sure),
        formats.operations,
    )  # fmt: skip


def _about(model: torch.nn.Module, formats: LintFormats) -> str:
    modules, buffers = len(list(model.modules())), len(list(model.buffers()))
    every = (formats.weights, formats.state, formats.operations, formats.gradients, formats.constants)
    labels = {format.label for format in every}
    counted = f"{modules} module{'s' * (modules != 1)} and {buffers} buffer{'s' * (buffers != 1)}"
    shards = ", of sharded weights this rank's elements" * any(hasattr(p, "to_local") for p in model.parameters())
    return f"Looked at: {counted}{shards}, for {', '.join(sorted(labels))}; no step was made."
