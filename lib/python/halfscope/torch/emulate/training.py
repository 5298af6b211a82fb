"""A training under emulation: its hooks, and the steps that it makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope._core import layer_operands, set_thread_count
from halfscope.torch.counts.totals import Totals
from halfscope.torch.counts.weights import Weights
from halfscope.torch.emulate.arithmetic import backends
from halfscope.torch.emulate.arithmetic.attention import Way, parse_attention
from halfscope.torch.emulate.arithmetic.gradient_sum import Additions, GradientSum
from halfscope.torch.emulate.arithmetic.own_casts import OwnCasts
from halfscope.torch.emulate.book import Book, ShardCounts
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.live_trail import LiveTrail
from halfscope.torch.emulate.mode import EmulatedArithmetic, ModeOptions
from halfscope.torch.emulate.operand_book import OperandBook
from halfscope.torch.emulate.parameters import ModelTensor, Parameters
from halfscope.torch.emulate.places import EndCalls, Places
from halfscope.torch.emulate.ranks.agreement import group_of
from halfscope.torch.emulate.ranks.data_parallel import Wire, is_data_parallel
from halfscope.torch.emulate.ranks.fully_shard import ShardedParameter, sharding_of
from halfscope.torch.emulate.ranks.reduce_scatter import ReduceScatter
from halfscope.torch.emulate.ranks.shard_counts import add_up
from halfscope.torch.emulate.ranks.shard_operations import ShardOperations
from halfscope.torch.emulate.step import Step
from halfscope.torch.emulate.twins.comparison import Comparison
from halfscope.torch.emulate.twins.differences import Differences
from halfscope.torch.emulate.twins.exact import Exact
from halfscope.torch.emulate.twins.noise import Noise
from halfscope.torch.emulate.twins.zero_counts import ZeroTable
from halfscope.torch.emulate.twins.zeros import Zeros
from halfscope.torch.events.observer import Observer, StepPlan
from halfscope.torch.events.place import RoundingOperations
from halfscope.torch.policy import FP32, Policy
from halfscope.torch.private import ENGINE, replace_attribute, without_function_modes
from halfscope.torch.steps.records import Records, Sinks
from halfscope.torch.steps.trainee import Trainee
from halfscope.torch.steps.training_steps import Record, Tally, TrainingSteps
from halfscope.torch.tensors.elements import HALF
from halfscope.torch.weak_hooks import WeakHook


@dataclass(frozen=True)
class Options:
    """Options of an emulation, beside its policy."""

    seed: int = 0
    strict: bool = False
    every: int = 10
    compare_steps: frozenset[int] = frozenset()
    attention: str = "fused"
    floor: bool = False  # for compared steps
    gradient_sum: str | None = None  # the format in which gradients are added up
    in_fp32: frozenset[str] = frozenset()  # operations that a trial computes so, by row
    observers: tuple[Observer, ...] | None = None  # told of compared steps, in place of the training's own
    zeros: bool = False  # whether each zero of a weight gradient gets a cause
    restarts: bool = False  # whether a copy of the state at entry is kept, for `bisect`


@dataclass
class Findings:
    """Findings of a training."""

    book: Book
    totals: Totals
    trail: LiveTrail
    comparison: Comparison = field(default_factory=Comparison)
    records: Records = field(default_factory=lambda: Records(Sinks(None, None)))
    tally: Tally = field(default_factory=Tally)
    computed: RoundingOperations = field(default_factory=RoundingOperations)
    wire: Wire | ReduceScatter | None = None  # where several ranks train
    additions: Additions = field(default_factory=Additions)  # to gradients
    zeros: ZeroTable | None = None  # where they were asked for
    operands: OperandBook = field(default_factory=OperandBook)  # operands of products, in formats of their own
    without_rule: dict[str, str] = field(default_factory=dict)  # operations, with the first module that called each


class EmulatedTraining:
    """Between `begin` and `end` every step of a training is emulated: the listener of its steps."""

    _under_way: EmulatedTraining | None = None

    def __init__(self, trainee: Trainee, policy: Policy, options: Options, findings: Findings) -> None:
        self._trainee, self._policy, self._options, self._found = trainee, policy, options, findings
        self._places = Places(trainee.model, policy, findings.computed)
        self._step = Step()
        self._caster = Caster(findings.book, options.seed, self._step)
        self._sharding = sharding_of(trainee.model)
        self._parameters = Parameters(trainee.model, policy, self._caster, self._sharding)
        self._attention = self._way_of_attention()
        formats = [policy.base, *(policy.at(name) for name, _ in self._places.modules())]
        self.rounds = any(own.rounds for own in formats)  # whether the policy changes a number
        self._wire: Wire | None = None
        if self.rounds and is_data_parallel(trainee.model):
            findings.wire = self._wire = Wire(trainee.model, policy.base.weight_gradient, self._caster)
        mode_options = ModeOptions(
            options.strict, self._attention.scale, findings.without_rule, options.in_fp32, findings.operands,
            self._wire, self._shards(),
        )  # fmt: skip
        self._mode = EmulatedArithmetic(policy, self._places, self._caster, self._parameters, mode_options)
        self._narrow_updates = any(own.optimizer_state != FP32 or own.master_weight != FP32 for own in formats)
        self._weights = [Weights(self._parameters.of(optimizer)) for optimizer in trainee.optimizers]
        self._undo: list[Callable[[], None]] = []
        self._hooked: dict[int, torch.Tensor] = {}  # whose gradients are rounded, by identity
        self._steps = TrainingSteps(trainee, findings.tally, findings.records, self)
        self._postponed: int | None = None  # the step that was to be compared, and was skipped
        self._gradient_sum: GradientSum | None = None
        self._halves = False  # whether weights are stored in 16 bits

    def _way_of_attention(self) -> Way:
        """Attention as asked; fused kernels are the CPU's, and have no products of operands in formats of their own."""
        asked = parse_attention(self._options.attention)
        if asked.kind != "fused":
            return asked
        modules = self._places.modules()
        has_formats = any(layer_operands(self._policy.at(name).operands, "matmul", name) for name, _ in modules)
        is_on_cpu = all(parameter.device.type == "cpu" for parameter in self._trainee.model.parameters())
        return asked if is_on_cpu and not has_formats else Way("math")

    def _shards(self) -> ShardOperations | None:
        """Operations of a model of which each rank has a part; its book counts shards from now on."""
        sharding, shards = self._sharding, None
        if sharding is not None:
            is_first = torch.distributed.get_rank(sharding.group) == 0
            shards = ShardCounts(is_first, frozenset(sharding.parameters))
        self._found.book.follow(self._places.is_recomputing, shards)
        if sharding is None:
            return None
        wire = self._found.wire = ReduceScatter(sharding, self._policy.base.weight_gradient, self._caster)
        return ShardOperations(sharding, wire, self._caster)

    def begin(self) -> None:
        if EmulatedTraining._under_way is not None:
            raise RuntimeError("emulate: inside of another emulation's block; leave that first")
        set_thread_count(torch.get_num_threads())
        try:
            self._set_hooks()
            self._mode.__enter__()
            self._undo.append(lambda: self._mode.__exit__(None, None, None))
            self._follow_casts()
            self._steps.start()
        except BaseException:
            self.end()
            raise
        EmulatedTraining._under_way = self

    def _set_hooks(self) -> None:
        model, optimizers = self._trainee.model, self._trainee.optimizers
        self._undo.append(self._steps.close)
        self._steps.follow_model()
        halves = self._halves = any(parameter.dtype in HALF for parameter in model.parameters())
        if self._sharding is not None:
            halves = halves or self._sharding.has_type(HALF)
            self._undo += self._sharding.begin(self._gathered)
        decompose = backends.decompose_fused_layers if self.rounds or halves else backends.decompose_in_autocast
        self._undo += decompose(self._attention)
        # Under FP32 too: the script may have tensors of 16 bits, by its own casts or by autocast.
        self._undo.append(model.register_forward_pre_hook(WeakHook(self._before_forward)).remove)
        left_backward = (lambda: None) if self._wire is None else self._wire.receive
        self._places.begin(EndCalls(self._step.left_node, left_backward, self._step.enter_backward))
        self._undo.append(self._places.end)
        if self.rounds or self._found.zeros is not None:
            self._round_gradients(self._parameters.all())
        if self._options.gradient_sum is not None:
            self._accumulate(self._options.gradient_sum)
        if halves or self._narrow_updates:
            self._undo += backends.step_one_by_one(optimizers)

    def _accumulate(self, quantizer: str) -> None:
        """Has gradients added up in a format."""
        if self._sharding is not None:
            raise ValueError("emulate: gradient_sum of a model that ranks share; they add up shards in FP32")
        self._gradient_sum = GradientSum(quantizer, self._caster, self._found.additions)
        self._undo += self._gradient_sum.follow(self._parameters.all())

    def _follow_casts(self) -> None:
        """Has the model's own casts act as they would in 16 bits."""
        if not self.rounds:
            return
        casts = OwnCasts(self._policy, self._places, self._mode, self._parameters, self._attention)
        casts.__enter__()
        self._undo.append(lambda: casts.__exit__(None, None, None))
        run = getattr(torch.autograd, ENGINE)

        def run_backward(*arguments: Any, **options: Any) -> Any:
            """A function mode is off in the backward pass that it has intercepted."""
            with casts:
                return run(*arguments, **options)

        self._undo.append(replace_attribute(torch.autograd, ENGINE, run_backward))
        if self._policy.fp32_parameters:
            self._undo += backends.follow_autocast(self._places)

    def _round_gradients(self, parameters: list[ModelTensor]) -> None:
        """Rounds gradients of parameters on arrival; of sharded ones before the ranks' gradients are added up."""
        for owned in parameters:
            used = owned.used
            if used is not None and used.requires_grad and id(used) not in self._hooked:
                self._undo.append(used.register_hook(WeakHook(self._weight_gradient, owned)).remove)
                self._hooked[id(used)] = used

    def _gathered(self, whole: list[ShardedParameter]) -> None:
        found = self._parameters.gathered(whole)
        if self.rounds:
            self._round_gradients(found)

    def end(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        self._step.end(stepped=False)
        EmulatedTraining._under_way = None

    def log(self, loss: float) -> None:
        """The loss of a step: of which, `TrainingSteps.log` says."""
        self._steps.log(loss)

    def _before_forward(self, *_: Any) -> None:
        self._found.book.begin_forward()
        self._parameters.refresh_if_moved()

    def _weight_gradient(self, owned: ModelTensor, gradient: torch.Tensor) -> torch.Tensor:
        self._found.book.begin_backward()
        with without_function_modes():  # here the model casts nothing
            return self._step.round_arrival(owned, gradient, self._mode.weight_gradient)

    @property
    def records_step(self) -> bool:
        return True

    def before_update(self, place: int, has_closure: bool) -> None:
        self._places.begin_update()
        self._mode.updates.begin()
        if self._trainee.scaler is not None and place == 0:
            gradients = [owned.tensor.grad for owned in self._parameters.all() if owned.tensor.grad is not None]
            self._found.tally.scaler.see_gradients(gradients, self._trainee.scale())
        if self._counts_updates():
            self._weights[place].keep(has_closure)

    def _counts_updates(self) -> bool:
        """Whether the updates of the step are counted for the format that no weight is stored in."""
        counts = self.rounds or self._halves
        return counts and not self._narrow_updates and self._found.book.seen is not None

    def after_update(self, place: int, skipped: bool) -> None:
        self._places.end_update()
        self._parameters.forget_copies()
        seen = self._found.book.seen
        if seen is not None and not skipped and self._counts_updates():
            self._weights[place].count_updates(seen)

    def begin_step(self) -> None:
        self._found.book.begin_step(self._found.tally.steps + 1, self._trainee.scale())
        self._caster.begin_step()
        self._mode.begin_step()
        if self._gradient_sum is not None:
            self._gradient_sum.begin_step()
        self._step.begin(self._plan())

    def abandon_step(self) -> None:
        """Casts stay counted; the comparison of a step that ended in an error is dropped."""
        self._step.end(stepped=False)
        self._found.comparison.drop(self._found.tally.steps + 1)

    def _plan(self) -> StepPlan:
        """Who looks at the step that begins now."""
        found, number = self._found, self._found.tally.steps + 1
        compares = self._compares(number)
        exact = Exact() if compares or found.zeros is not None else None
        noise = Noise(number, self._mode) if compares and self._options.floor else None
        zeros = None
        if found.zeros is not None and exact is not None:
            zeros = Zeros(found.zeros, exact, self._places, self._mode)
        observers: list[Observer] = list(self._options.observers or ()) if compares else []
        if self._options.observers is None:
            observers += [Differences(found.comparison, self._mode.marks, exact, noise)] if compares and exact else []
            observers += [found.trail] if found.book.seeks_fault else []
        twins = tuple(twin for twin in (zeros, exact, noise) if twin is not None)
        asked = {} if exact is None else {"counterpart": exact.counterpart}
        note = self._places.nodes.note
        return StepPlan(number, twins, tuple(observers), owner_of=self._mode.owner_of, note=note, **asked)

    def _compares(self, number: int) -> bool:
        """Whether a step is compared with FP32."""
        return self.rounds and (number in self._options.compare_steps or self._postponed is not None)

    def _postpone_comparison(self, stepped: bool) -> None:
        """A skipped step is compared in the next one that is taken: its gradients are infinite."""
        step, comparison = self._found.tally.steps, self._found.comparison
        if not self._compares(step):
            return
        asked = step if self._postponed is None else self._postponed
        if not stepped:
            comparison.drop(step)
            self._postponed = asked
        elif self._postponed is not None:
            comparison.instead[asked], self._postponed = step, None

    def end_step(self, stepped: bool, record: Record | None) -> None:
        found, seen = self._found, self._found.book.seen
        found.book.end_step(stepped)
        self._step.end(stepped)
        found.operands.end_step(group_of(self._trainee.model))
        if self._trainee.scaler is not None:
            self._postpone_comparison(stepped)
        if seen is not None:
            seen.finish()
        if self._sharding is not None:
            add_up(found.book, self._sharding.group)
        if seen is not None:
            found.totals.add(seen)
        if record is not None:
            found.records.add(record, seen)
