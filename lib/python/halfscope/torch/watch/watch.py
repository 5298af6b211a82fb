"""Watches a PyTorch model while it trains: exact histograms of what its tensors hold, and which updates FP16 loses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from halfscope import Explorer, Histogram, ScaleAdvice
from halfscope.formats import label
from halfscope.reporting import Finding, Report, Reported
from halfscope.torch.counts.block_table import BlockTable
from halfscope.torch.counts.histogram_words import Circumstances, histogram_findings
from halfscope.torch.counts.ranks import CountedRoles, ranks_of
from halfscope.torch.counts.totals import ROLES, Totals
from halfscope.torch.findings.finding import wrapped
from halfscope.torch.steps.records import Records
from halfscope.torch.steps.run_folder import RunFolder
from halfscope.torch.steps.trainee import Trainee, watched_trainee
from halfscope.torch.tensors.elements import Choice
from halfscope.torch.watch.plan import Outputs, Plan
from halfscope.torch.watch.watcher import Book, StepWatcher

_UNSEEN = "Not looked at: {}. print(halfscope.torch.diagnose(model, loss)) looks at them."
_OUTSIDE = "operations outside of the model, such as the loss; the backward pass; roundings that add up between layers"
_DTENSOR = "Not looked at: operations, since '{}' is a DTensor outside of fully_shard; one process sees them."
_BETWEEN = "operations between layers, such as products, masks and softmax"


def watch(
    model: torch.nn.Module,
    every: int = 10,
    include: str | Iterable[str] = "*",
    exclude: str | Iterable[str] = (),
    *,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer],
    scaler: Any = None,
    format: str = "fp16",
    observe_roles: str | Iterable[str] = (),
    out: Path | str | None = None,
    tensorboard: Path | str | object | None = None,
    ranks: Any = "together",
    operations: bool = True,
) -> Watch:
    """Watches `model` from now on: on the first and every `every`-th step, what a format would do to its tensors.

    Counted are the outputs of all layers without layers in them, the gradients of these outputs and of the weights as
    the backward pass makes them (both carry the loss scale), the weights' gradients once more where something changed
    them before the optimizer got them, and the updates that `optimizer` makes. Nothing is changed.

    include, exclude: patterns, as in a shell, of the layers' and parameters' names: "encoder.*". A pattern that does
        not end in "*" as a whole name, such as "*.self_attn", also chooses modules with layers in them.
    optimizer: one, or all that train the model; a step then ends with the `step` of the last one.
    scaler: the GradScaler, where there is one; a step then ends with its `update()`.
    format: "fp16", "bf16", "fp8_e4m3", "fp8_e5m2" or any eXmY: what the tensors would be cast to, and in which the
        weights would be stored. All counts, records and sentences are about it. Or a block format, "mxfp4" or
        "nvfp4": outputs, weights and their gradients are counted by block, along the last axis (of tensors with four
        axes the second), and `blocks` has the counts. Vectors among the weights, updates and operations are not looked
        at.
    observe_roles: "optimizer_state" also counts what the optimizer keeps per parameter, such as Adam's exp_avg and
        exp_avg_sq, after each watched step.
    out: a folder that gets the records of the run, for `tools/figures` and `halfscope.results.read_experiment`.
    tensorboard: a folder, or a SummaryWriter, that gets histograms of log2 |x| of every tensor watched; for a block
        format the signal-to-noise ratio and the share that is flushed.
    ranks: "together" adds up the counts of all processes of torch.distributed, each of which must watch; a process
        group does so for its own; "alone" counts this process.
    operations: also looks at the operations of the forward pass, such as products, masks and softmax between layers:
        the report names the first that the format would make infinite or NaN, with its line. Under tensor parallelism
        they are not looked at, and the report says so.

    Raises ValueError where `every` is not positive, `format` or a role is unknown, the patterns leave nothing to watch,
    no optimizer has a parameter of the model, `out` holds a run already, or other ranks do not watch the same;
    TypeError for arguments of other types; ImportError where `tensorboard` is a folder and TensorBoard is not
    installed.
    """
    plan = Plan(every, Choice(include, exclude), format, observe_roles, operations)
    return Watch(watched_trainee(model, optimizer, scaler), plan, Outputs(out, tensorboard, ranks))


def watch_into(trainee: Trainee, every: int, folder: RunFolder) -> Watch:
    """Watches all layers in this process, with the records in `folder`."""
    return Watch(trainee, Plan(every, Choice("*", ()), "fp16", ()), Outputs(folder, None, "alone"))


class Watch(Reported):
    """Result of `watch`; a context manager that closes itself."""

    def __init__(self, trainee: Trainee, plan: Plan, outputs: Outputs) -> None:
        self._watcher = StepWatcher(trainee, plan)
        counted = CountedRoles(self.layers, self._watcher.parameters, plan.counter, plan.optimizer_state)
        self._ranks = ranks_of(outputs.ranks, counted)
        self._records = Records(outputs.open(self._ranks.first))
        self._counter = plan.counter
        self._totals = plan.counter.totals()
        settings = {"every": plan.every, "loss_scale": "none" if trainee.scaler is None else "dynamic"}
        self._records.begin(settings if plan.format == "fp16" else {**settings, "format": plan.format})
        self._watcher.start(Book(self._ranks, self._totals, self._records))

    @property
    def format(self) -> str:
        """The number format that all counts are for, by its own name."""
        return self._totals.format

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self._watcher.tally.steps

    @property
    def layers(self) -> list[str]:
        """Names of the layers that are watched, those added since too."""
        return list(self._watcher.layers.named())

    @property
    def unseen(self) -> list[str]:
        """Names of the layers that no watched step has called."""
        return self._watcher.layers.unseen()

    def log(self, loss: float | torch.Tensor) -> None:
        """Notes the loss of a step, without the loss scale, for the records' curve.

        It is that of the step under way; after its end, before the next forward pass, of the one that has just ended.
        """
        self._watcher.log(float(loss.detach()) if isinstance(loss, torch.Tensor) else float(loss))

    @property
    def report(self) -> Report:
        """Words on the watched steps, and which loss scales are usable; what was not looked at. Every rank has it."""
        return Report("watch", tuple(self._findings()), self._not_looked_at(), self._words())

    def _not_looked_at(self) -> str:
        if self._counter.unseen:
            return self._counter.unseen
        if self._watcher.dtensor is not None:
            return _DTENSOR.format(self._watcher.dtensor)
        return _UNSEEN.format(_BETWEEN if self._watcher.operations is None else _OUTSIDE)

    def _findings(self) -> Iterator[Finding]:
        """Operations that a format makes infinite, the loss scale to type, and updates that it loses."""
        operations = self._watcher.operations
        if operations is not None and operations.faults.finding is not None:
            yield operations.faults.finding
        if self._counter.knows_scale:
            yield from histogram_findings(self._totals, self._circumstances())

    def explore(self) -> Explorer:
        """The explorer of the gradients of layers and weights, all watched steps together: a page, or a widget."""
        return self._for_a_loss_scale("explore").explore(f"Gradients in {label(self.format)}")

    def _circumstances(self) -> Circumstances:
        watcher = self._watcher
        return Circumstances(
            len(self.layers), self.unseen, watcher.layers.compiled(), watcher.unowned, watcher.unknown_scale,
            watcher.tally.optimizer_steps, watcher.tally.steps, self._ranks.size,
        )  # fmt: skip

    def _words(self) -> str:
        watcher, operations = self._watcher, self._watcher.operations
        seen = [] if operations is None else operations.faults.words()
        counted = self._counter.words(self._totals, self._circumstances())
        text = "\n".join([*seen, counted, *watcher.tally.scaler.words()])
        finding = None if operations is None else operations.faults.finding
        return text if finding is None else f"{wrapped(str(finding))}\n\n{text}"

    def histograms(self, role: str = "weight_gradient") -> dict[str, Histogram]:
        """Histograms by tensor, of all watched steps together, without the loss scale.

        role: "activation", "activation_gradient", "weight_gradient" (in the backward pass), "optimizer_gradient"
        (where the optimizer got another one, such as a clipped one), "update_ratio" for |update / weight|, or
        "optimizer_state" (where it was asked for; "fc.weight.exp_avg"). Raises ValueError for another one.
        """
        if role not in ROLES:
            raise ValueError(f"histograms: role {role!r}; give one of {', '.join(ROLES)}")
        return self._for_a_loss_scale("histograms").histograms(role)

    def histogram(self, role: str = "weight_gradient") -> Histogram:
        """Histogram of all tensors together."""
        if role not in ROLES:
            raise ValueError(f"histogram: role {role!r}; give one of {', '.join(ROLES)}")
        return self._for_a_loss_scale("histogram").together(role)

    def blocks(self) -> BlockTable:
        """Counts of a block format by tensor and role, over all watched steps; `print` shows the noisiest tensors.

        roles: "activation" (outputs of layers), "activation_gradient", "weight" (as each step leaves them),
        "weight_gradient" (of the backward pass) and "optimizer_state" where it was asked for. Raises ValueError for a
        format without blocks.
        """
        if self._counter.knows_scale:
            raise ValueError(f"blocks: {self.format} has none; histograms() has its counts")
        table: BlockTable = self._totals.table()
        return table

    def _for_a_loss_scale(self, method: str) -> Totals:
        if not self._counter.knows_scale:
            raise ValueError(
                f"{method}: each block of {self.format} has a scale of its own, whatever the loss scale is; "
                "blocks() has its counts"
            )
        totals: Totals = self._totals
        return totals

    def advise_scale(self, **options: Any) -> ScaleAdvice:
        """`halfscope.advise_scale` of the gradients of layers and weights for the watched format; options as it has."""
        return self._for_a_loss_scale("advise_scale").advise_scale(**options)

    def trace(self) -> list[dict]:
        """The watched steps, for `halfscope.replay`: what other loss scalers would have done, had gradients been FP16.

        `finite` is about the gradients' own type. FP32 gradients beyond FP16's largest number are finite, skip no step
        of the run and overflow in the replay: `would_overflow` counts them.
        """
        self._for_a_loss_scale("trace")
        return self._records.trace()

    def close(self) -> None:
        """Takes the hooks away and finishes the records; a second time it does nothing."""
        if self._watcher.close():
            self._records.finish(self.steps, self._words())

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
        elif self._watcher.close():
            self._records.fail(error)
