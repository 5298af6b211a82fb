"""Emulation of a PyTorch training in other formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any

import torch

from halfscope import Explorer, Histogram, ScaleAdvice
from halfscope.formats import Format
from halfscope.old_words import without_old_arguments
from halfscope.reporting import Finding, Report, Reported, wrapped
from halfscope.torch.counts.totals import ROLES, Totals
from halfscope.torch.emulate.arithmetic.attention import parse_attention
from halfscope.torch.emulate.arithmetic.gradient_sum import checked_gradient_sum
from halfscope.torch.emulate.arithmetic.product_operands import heads_of
from halfscope.torch.emulate.book import Book, CastTotals, FirstOverflow
from halfscope.torch.emulate.large_models import (
    compared_steps,
    keeps_start,
    left_out_words,
    refuse_without_memory,
)
from halfscope.torch.emulate.live_trail import LiveTrail
from halfscope.torch.emulate.operand_book import OperandTable
from halfscope.torch.emulate.ranks.agreement import agreed, result_of
from halfscope.torch.emulate.ranks.fully_shard import check_sharding
from halfscope.torch.emulate.training import EmulatedTraining, Findings, Options, Trainee
from halfscope.torch.emulate.twins.comparison import Comparison
from halfscope.torch.emulate.twins.zero_counts import ZeroTable
from halfscope.torch.emulate.words import lost_update_findings, report_text, without_rule_words
from halfscope.torch.findings.sentences import seen_finding, update_finding
from halfscope.torch.policy import FP32, Policy
from halfscope.torch.search.bisection import Bisection, bisect
from halfscope.torch.search.candidates import Candidates, keeping_fp32
from halfscope.torch.search.scale_errors import SCALES, ScaleProbe, errors_at
from halfscope.torch.steps.optimizers import optimizers_of
from halfscope.torch.steps.records import Records, Sinks
from halfscope.torch.steps.snapshot import Snapshot
from halfscope.torch.steps.trainee import check_module


@without_old_arguments
def emulate(
    model: torch.nn.Module,
    policy: str | Mapping[str, str],
    *,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer] = (),
    scaler: Any = None,
    order: str | None = None,
    exceptions: Mapping[str, Any] | None = None,
    seed: int = 0,
    strict: bool = False,
    every: int = 10,
    compare_steps: Iterable[int] | None = None,
    attention: str = "fused",
    floor: bool = False,
    sum_order: str | None = None,
    gradient_sum: str | None = None,
    zeros: bool = False,
    restarts: bool | None = None,
) -> Emulation:
    """Trains `model` in the formats of `policy` inside of a `with` block, whatever the training loop is.

    Every operation of the model's forward and backward pass, and of the optimizer's step, is computed exactly as
    hardware of these formats would: operands and results are rounded to the format of their role, matrix products and
    convolutions are summed in a named order. The rest of the loop, such as the loss, is FP32.

    policy: a name of `halfscope list policies`, such as "mxfp8" and "nvfp4", which have formats of operands; a
        format such as "bf16" or "fp8_e4m3" for the tensors of the network beside FP32 master weights; or a mapping of
        settings as TOML and `halfscope run --set` have them: policy, roles (weight, activation, activation_gradient,
        weight_gradient, master_weight, optimizer_state), order, sum_order and operands. Tensors that are FP16 or BF16
        already keep that type.
    optimizer: one, or all that train the model; none for single passes, such as an inference under `no_grad`.
    scaler: the GradScaler, where there is one; a step then ends with its `update()`.
    order: the order of products, as `halfscope list orders` has them, or "pytorch" for PyTorch's own FP32
        sums of rounded operands; by default that of the policy. "split_k(32, bf16)" stores the sums of 32 parts of K in
        a format, each part in the policy's order or another, as "split_k(32, bf16)/fp32_fused", then adds them in FP32.
    exceptions: by pattern of module names, as in a shell, another format, a policy, or a mapping of settings but for
        "policy"; of several that match the last holds. "MODULES:OPERATIONS"
        keeps operations in FP32: {"*:softmaxes": "fp32"} all of a kind, {"mlp:mul.2": "fp32"} the second mul of a
        call of mlp.
    seed: of stochastic rounding.
    strict: refuses an operation that has no rule; else it is computed in FP32, its result rounded once, and `report`
        names it.
    every: histograms are taken on the first and every `every`-th step; casts are counted on all.
    compare_steps: the steps, from 1, on which every tensor is compared with an FP32 run of the same step; it takes
        several times the time and memory of another step. By default steps 1, 10, 100 and 1000 of a model of at most
        10 million weights, and none of a larger one, which the report says.
    attention: scaled_dot_product_attention as GPUs' fused kernels compute it ("fused"), with scores in FP32 and
        probabilities rounded before their second product, times a power of two with "tiled(S)"; or as separate
        operations, each rounded ("math"). With dropout, "fused" leaves the probabilities in FP32 too.
    sum_order: the order of `sum` and `mean`, by default "fp32_chunked(256)"; "fp16_sequential" stalls at 2048 ones.
    gradient_sum: the format in which `.grad` adds up gradients of several backward passes.
    floor: computes compared steps once more with roundings at random, for `compare_to(floor=True)`.
    zeros: gives each zero of a weight gradient a cause, in `report` and `zeros()`; a step takes 2 to 7 times as long.
    restarts: keeps a copy of weights and optimizer at entry, from which `bisect` starts each training; by default of a
        model of at most 10 million weights.

    Raises ValueError for an unknown policy, format or order of a sum and for an exception that matches no module;
    TypeError for arguments of other types, compiled modules and DataParallel.
    """
    parsed = Policy(policy, order, exceptions or {}, sum_order)
    check_model(model)
    if every < 1:
        raise ValueError(f"emulate: every={every}; give 1 or more steps")
    options = Options(
        seed, strict, every, compared_steps(model, compare_steps), attention, floor,
        checked_gradient_sum(gradient_sum), zeros=zeros, restarts=keeps_start(model, restarts),
    )  # fmt: skip
    parse_attention(attention)
    return Emulation(Trainee(model, optimizers_of(optimizer, "emulate"), scaler), parsed, options)


_NO_START = "no copy of the state at entry was kept; give emulate(..., restarts=True)"


class Emulation(Reported):
    """Result of `emulate`: a context manager, and afterwards what it has counted."""

    def __init__(
        self,
        trainee: Trainee,
        policy: Policy,
        options: Options,
        records: Records | None = None,
        before: Snapshot | None = None,
    ) -> None:
        """before: the state at entry, of a caller that has a copy of it."""
        policy.check_update()
        policy.check_exceptions([name for name, _ in trainee.model.named_modules()])
        heads = heads_of(trainee.model) if policy.base.operands else []
        policy = policy.leaving(heads) if heads else policy
        self._heads = [name for name in heads if policy.at(name).operands == policy.base.operands]
        self._trainee, self._policy, self._options = trainee, policy, options
        format = policy.histogram_format
        book = Book(options.every, format)
        self._found = Findings(
            book,
            Totals(format),
            LiveTrail(Format.of(format), book.excuse),
            Comparison(floor=options.floor),
            Records(Sinks(None, None)) if records is None else records,
            zeros=ZeroTable() if options.zeros else None,
        )
        self._training: EmulatedTraining | None = None
        self._before = before

    def __enter__(self) -> Emulation:
        if self._training is not None:
            raise RuntimeError("emulate: entered already")
        training = EmulatedTraining(self._trainee, self._policy, self._options, self._found)
        if training.rounds:
            refuse_without_memory(self._trainee.model, self._options.compare_steps)
        if self._before is None and self._options.restarts:
            self._before = Snapshot.of(self._trainee)
        training.begin()
        self._training = training
        return self

    def __exit__(self, _kind: type | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        if self._training is not None:
            self._training.end()
        self._training = None

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self._found.tally.steps

    @property
    def first_overflow(self) -> FirstOverflow | None:
        """Step, tensor and role of the first number that is not finite; None where all are.

        Overflows of gradients that a falling loss scale cured are not counted.
        """
        return self._found.book.first_overflow

    @property
    def without_rule(self) -> dict[str, str]:
        """Operations of the model that the table has no rule for, each with the first module that called it."""
        return dict(self._found.without_rule)

    @property
    def lost_updates(self) -> float:
        """The share of the updates that were not zero and left a weight as it was, without an FP32 master copy."""
        book = self._found.book
        return book.lost_updates / book.nonzero_updates if book.nonzero_updates else 0.0

    @property
    def lost_weight_decay(self) -> float:
        """The share of the weights' decays, apart from the gradient as AdamW has them, that left a weight as it was."""
        book = self._found.book
        return book.lost_decays / book.nonzero_decays if book.nonzero_decays else 0.0

    @property
    def lost_additions(self) -> float:
        """The share of the additions to `.grad` that were not zero and left an element as it was."""
        counted = self._found.additions
        return counted.lost / counted.nonzero if counted.nonzero else 0.0

    def counts(self) -> dict[str, Any]:
        """Entries of a run's summary: share of the gradients flushed, updates lost, steps skipped."""
        totals = [total for (role, _), total in self.casts().items() if role.endswith("gradient")]
        gradients = {
            name: sum(getattr(total, name) for total in totals) for name in ("flushed", "subnormal", "overflow")
        }
        gradients["nonzero"] = sum(total.nonzero for total in totals)
        counts = {"gradients": gradients, "skipped": self._found.tally.skipped, "final_scale": self._trainee.scale()}
        return {**counts, "lost_updates": self.lost_updates}

    def log(self, loss: float | torch.Tensor) -> None:
        """Notes the loss of a step, without the loss scale, for the records of `ablate`."""
        if self._training is not None:
            self._training.log(float(loss.detach()) if isinstance(loss, torch.Tensor) else float(loss))

    @property
    def report(self) -> Report:
        """Roundings in words: casts by role, the first overflow, lost updates. A call prints it."""
        options = self._options
        about = left_out_words(self._trainee.model, options.compare_steps, options.restarts)
        overflow = self._finding()
        told = [] if overflow is None else [overflow]
        lost = lost_update_findings(self._policy, self._found.book)
        text = "\n\n".join([*(wrapped(str(each)) for each in (*told, *lost)), self._words(is_told=bool(told))])
        return Report("emulate", (*told, *lost), about, text)

    def _words(self, is_told: bool) -> str:
        """is_told: whether a finding has the first overflow."""
        found = self._found
        text = report_text(
            self._policy, found.book, found.tally.steps, found.totals.stalled.values(), is_told=is_told
        )  # fmt: skip
        words = "" if found.wire is None else found.wire.words()
        zeros = [] if found.zeros is None else found.zeros.words()
        left = f"The policy leaves the head ({', '.join(self._heads)}) as it was." if self._heads else ""
        operands = [*self.operands().words(), left, without_rule_words(found.without_rule)]
        return " ".join(filter(None, [text, *operands, *found.tally.scaler.words(), words, *zeros]))

    def _finding(self) -> Finding | None:
        """Finding on the first overflow: what to change, and why."""
        first, trail = self.first_overflow, self._found.trail
        if first is None:
            return None
        seen = f"seen in step {first.step}" + (f" at a loss scale of {first.scale:g}" if first.scale != 1 else "")
        if first.role in ("master_weight", "optimizer_state"):
            state = self._policy.base.optimizer_state
            format = None if state == FP32 else Format.of(state)
            return update_finding([first.tensor], self._trainee.optimizers, format, f"{seen}; no change was tried")
        fault = trail.fault_of(first)
        return None if fault is None else seen_finding(fault, seen)

    def zeros(self) -> ZeroTable:
        """Zeros of each weight's gradient by cause, over all backward passes; `print` shows the table.

        A cause is the first of: zero in FP32 too (true), flushed in the forward pass, by a later layer's gradient
        (upstream), by the cast of the output's gradient, as a product or sum; cancelled; flushed by the cast of the
        result. The counts of a tensor sum to its zeros.

        Raises RuntimeError without `emulate(..., zeros=True)`.
        """
        if self._found.zeros is None:
            raise RuntimeError("zeros: not looked for; give emulate(..., zeros=True)")
        return self._found.zeros

    def operands(self) -> OperandTable:
        """Operands of products in the formats of a policy, such as "nvfp4": their counts by layer and operand.

        "forward.left" is x of y = x w, "forward.right" w; data_gradient has dy and w, weight_gradient dy and x. Counts
        are of all training steps. Empty under policies without formats of operands.
        """
        return OperandTable(self._found.operands.rows)

    @property
    def products(self) -> list[str]:
        """Products whose operands had formats of their own, as `bisect(units="products")` names them; else none."""
        return self._candidates(self._found).of("products") if self._found.operands.products else []

    def casts(self) -> dict[tuple[str, str], CastTotals]:
        """Elements cast by role and tensor, and how many were flushed, made subnormal or overflowed.

        Where nothing was trained these are the casts of evaluations, under `no_grad` or `inference_mode`.
        """
        return dict(self._found.book.casts())

    def histograms(self, role: str) -> dict[str, Histogram]:
        """Exact numbers before their rounding, by tensor, of all watched steps together, without the loss scale.

        Raises ValueError for an unknown role.
        """
        if role not in ROLES:
            raise ValueError(f"histograms: role {role!r}; give one of {', '.join(ROLES)}")
        return self._found.totals.histograms(role)

    def advise_scale(self, **options: Any) -> ScaleAdvice:
        """`halfscope.advise_scale` of the gradients that were rounded; options as it has."""
        return self._judged_totals().advise_scale(**options)

    def explore(self) -> Explorer:
        """The explorer of these gradients: a page, or a widget."""
        return self._judged_totals().explore(f"Gradients under {self._policy.name}")

    def _judged_totals(self) -> Totals:
        """Totals that know which gradients are round-off alone, by the compared steps."""
        self._found.totals.of_no_size = self._found.comparison.of_no_size()
        return self._found.totals

    def compare_to(self, policy: str = FP32, steps: Iterable[int] | None = None, *, floor: bool = False) -> Comparison:
        """Error and cosine of every tensor beside the same step in FP32, from the same weights, of compared steps.

        floor: also the error that the roundings explain, and how many times that is reached; lines on what is beyond
            it, and on casts with a mean signed error. Needs `emulate(..., floor=True)`.

        Raises ValueError for another policy than fp32, and for steps that `emulate` was not told to compare.
        """
        if policy != FP32:
            raise ValueError(f"compare_to: {policy!r}; steps are compared with 'fp32'")
        if not self._options.compare_steps:
            raise ValueError("compare_to: no step is compared; give emulate(..., compare_steps=[1])")
        return self._found.comparison.of_steps(steps, floor)

    def probe_scales(self, loss: Callable[[], torch.Tensor], scales: Iterable[float] | None = None) -> list[ScaleProbe]:
        """`halfscope.torch.probe_scales` under this policy, between two steps; no counts change."""
        training, model = self._training, self._trainee.model
        if training is not None:
            training.end()
        try:
            within = lambda: emulation_without_optimizer(model, self._policy)  # noqa: E731
            return errors_at(model, loss, SCALES if scales is None else scales, within=within)
        finally:
            if training is not None:
                self._training = EmulatedTraining(self._trainee, self._policy, self._options, self._found)
                self._training.begin()

    def bisect(
        self,
        accepts: Callable[[], Any],
        *,
        units: str = "layers",
        layers: Iterable[str] | None = None,
        within: float = 0.01,
    ) -> Bisection:
        """Layers or operations that must stay in FP32 for `accepts` to return True: none of it can be left out.

        accepts: trains the model and says whether the result will do; of several ranks all must accept. Or it returns
            a number to minimise, such as the loss, which will do near that of all candidates in FP32; ranks take the
            largest of theirs. Each call starts from the weights, the optimizer's state and the random numbers that
            there were when the emulation was entered. A training whose steps were all skipped is refused, whatever it
            says.
        units: of the candidates. "layers": modules that compute something, "" for the model's own operations;
            "operations": layers of PyTorch's, and each operation of other modules; "kinds": all softmaxes, all norms,
            all products ... of the model. Also "(stored weights)" and "(optimizer state)" where these are narrow.
            "products": forward, data_gradient and weight_gradient of each layer that a policy gives formats of
            operands, as "forward@fc1"; they keep the formats of their roles.
        layers: these candidates instead: names of modules, and "MODULES:OPERATIONS" as `emulate(exceptions=)` has them.
        within: of a number, how far above that of FP32 it may be, relative to that.

        The model is left as the last training left it. Raises ValueError where it will not do with all of them in
        FP32, and for an unknown name; RuntimeError inside of the block, where it was never entered, and with
        `restarts=False`.
        """
        if self._training is not None:
            raise RuntimeError("bisect: leave the block of emulate first")
        if self._before is None:
            kept = self._options.restarts
            raise RuntimeError(f"bisect: {'enter the block of emulate first' if kept else _NO_START}")
        found = self._found
        if not found.computed.modules:  # the block had no forward pass that shows the operations
            found = self._trained([], accepts)[1]
        candidates = self._candidates(found)
        chosen = candidates.of(units) if layers is None else candidates.chosen(layers)
        return bisect(accepts, chosen, self._train_with_fp32, within)

    def _candidates(self, found: Findings) -> Candidates:
        return Candidates(self._trainee.model, self._policy, found.computed, found.operands.products)

    def _train_with_fp32(self, names: list[str], train: Callable[[], Any]) -> bool | float | None:
        """The result of `train`, from the beginning, with these in FP32; None where every step was skipped."""
        told, found = self._trained(names, train)
        tally = found.tally
        return agreed(self._trainee.model, None if tally.steps and tally.skipped == tally.steps else told)

    def _trained(self, names: list[str], train: Callable[[], Any]) -> tuple[bool | float | None, Findings]:
        assert self._before is not None
        self._before.restore(self._trainee)
        options = replace(self._options, compare_steps=frozenset(), zeros=False, restarts=False)
        with Emulation(self._trainee, keeping_fp32(self._policy, names), options) as training:
            told = result_of(train())
        return told, training._found


def emulation_without_optimizer(model: torch.nn.Module, policy: str | Mapping[str, str] | Policy) -> Emulation:
    """Emulation of single passes; arguments and errors as `emulate` has them."""
    check_model(model)
    parsed = policy if isinstance(policy, Policy) else Policy(policy, None, {})
    return Emulation(Trainee(model, []), parsed, Options())


def check_model(model: torch.nn.Module, door: str = "emulate") -> None:
    """Raises TypeError for what cannot be emulated. door: the function that was called."""
    check_module(model, door)
    check_sharding(model, door)
