"""A training under emulation: its hooks, and the steps that it makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope._core import layer_operands, set_thread_count
from halfscope.formats import Format
from halfscope.torch.counts.totals import Totals
from halfscope.torch.counts.weights import Weights
from halfscope.torch.emulate.arithmetic import backends
from halfscope.torch.emulate.arithmetic.attention import Way, parse_attention
from halfscope.torch.emulate.arithmetic.gradient_accumulator import Additions, GradientAccumulator
from halfscope.torch.emulate.arithmetic.half_tensors import HALF
from halfscope.torch.emulate.arithmetic.own_casts import OwnCasts
from halfscope.torch.emulate.book import Book, ShardCounts
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.live_trail import LiveTrail
from halfscope.torch.emulate.mode import EmulatedArithmetic, ModeOptions
from halfscope.torch.emulate.operand_book import OperandBook
from halfscope.torch.emulate.parameters import Owned, Parameters
from halfscope.torch.emulate.places import Places, replace_attribute
from halfscope.torch.emulate.ranks.agreement import group_of
from halfscope.torch.emulate.ranks.data_parallel import Wire, is_data_parallel
from halfscope.torch.emulate.ranks.fully_shard import ShardedParameter, Sharding, sharding_of
from halfscope.torch.emulate.ranks.reduce_scatter import ReduceScatter
from halfscope.torch.emulate.ranks.shard_counts import add_up
from halfscope.torch.emulate.ranks.shard_operations import ShardOperations
from halfscope.torch.emulate.twins.comparison import Comparison
from halfscope.torch.emulate.twins.exact import Shadows
from halfscope.torch.emulate.twins.zero_counts import ZeroTable
from halfscope.torch.emulate.twins.zeros import ZeroCauses
from halfscope.torch.events.change import Override
from halfscope.torch.events.place import Computed
from halfscope.torch.events.source import current_site
from halfscope.torch.policy import FP32, Policy
from halfscope.torch.private import ENGINE
from halfscope.torch.steps.optimizers import StepHooks
from halfscope.torch.steps.records import Records, Sinks
from halfscope.torch.steps.scaler_steps import ScalerSteps
from halfscope.torch.weak_hooks import WeakHook
from halfscope.torch.wrapping import wrap_method


@dataclass(frozen=True)
class Trainee:
    """Model and optimizer in training."""

    model: torch.nn.Module
    optimizers: list[Any]
    scaler: Any = None

    def scale(self) -> float:
        """The loss scale of the next backward pass."""
        return 1.0 if self.scaler is None else float(self.scaler.get_scale())


@dataclass(frozen=True)
class Options:
    """Options of an emulation, beside its policy."""

    seed: int = 0
    strict: bool = False
    every: int = 10
    compare_steps: frozenset[int] = frozenset()
    attention: str = "fused"
    floor: bool = False  # for compared steps
    gradient_accumulator: str | None = None  # the format in which gradients are added up
    changes: Mapping[str, Override] = field(default_factory=dict)  # a trial's, by row: operations computed otherwise


@dataclass
class Findings:
    """Findings of a training."""

    book: Book
    totals: Totals
    comparison: Comparison = field(default_factory=Comparison)
    records: Records = field(default_factory=lambda: Records(Sinks(None, None)))
    steps: int = 0
    skipped: int = 0
    scaler: ScalerSteps = field(default_factory=ScalerSteps)
    computed: Computed = field(default_factory=Computed)
    wire: Wire | ReduceScatter | None = None  # where several ranks train
    additions: Additions = field(default_factory=Additions)  # to gradients
    zeros: ZeroTable | None = None  # where they were asked for
    operands: OperandBook = field(default_factory=OperandBook)  # operands of products, in formats of their own
    without_rule: dict[str, str] = field(default_factory=dict)  # operations, with the first module that called each
    describes: bool = True  # the first overflow
    trail: LiveTrail | None = None
    observe: Callable[[Shadows, EmulatedArithmetic], None] | None = None  # at the beginning of a compared step


class EmulatedTraining:
    """Between `begin` and `end` every step of a training is emulated."""

    _under_way: EmulatedTraining | None = None

    def __init__(self, trainee: Trainee, policy: Policy, options: Options, findings: Findings) -> None:
        self._trainee, self._policy, self._options, self._found = trainee, policy, options, findings
        self._places = Places(trainee.model, policy)
        self._places.computed = findings.computed
        findings.book.is_recomputing = self._places.is_recomputing
        self._caster = Caster(findings.book, options.seed)
        self._sharding = sharding_of(trainee.model)
        self._parameters = Parameters(trainee.model, policy, self._caster, self._sharding)
        self._attention = self._way_of_attention()
        mode_options = ModeOptions(options.strict, self._attention.scale, findings.without_rule, options.changes)
        self._mode = EmulatedArithmetic(policy, self._places, self._caster, self._parameters, mode_options)
        self._mode.product_operands.found = findings.operands
        formats = [policy.base, *(policy.at(name) for name, _ in self._places.modules())]
        self._rounds = any(own.rounds for own in formats)
        self._narrow_updates = any(own.optimizer_state != FP32 or own.master_weight != FP32 for own in formats)
        self._weights = [Weights(self._parameters.of(optimizer)) for optimizer in trainee.optimizers]
        self._undo: list[Callable[[], None]] = []
        self._hooked: dict[int, torch.Tensor] = {}  # whose gradients are rounded, by identity
        self._loss: float | None = None
        self._stepped = False
        self._postponed: int | None = None  # the step that was to be compared, and was skipped
        self._accumulator: GradientAccumulator | None = None
        self._follow_overflow()
        self._halves = False  # whether weights are stored in 16 bits

    def _way_of_attention(self) -> Way:
        """As asked; fused kernels are the CPU's, and have no products of operands in formats of their own."""
        asked = parse_attention(self._options.attention)
        if asked.kind != "fused":
            return asked
        modules = self._places.modules()
        has_formats = any(layer_operands(self._policy.at(name).operands, "matmul", name) for name, _ in modules)
        is_on_cpu = all(parameter.device.type == "cpu" for parameter in self._trainee.model.parameters())
        return asked if is_on_cpu and not has_formats else Way("math")

    def _follow_overflow(self) -> None:
        """Has the first overflow described as it comes."""
        found = self._found
        if not found.describes:
            return
        trail = LiveTrail(Format.of(found.book.format), self._mode, found.book.excuse)
        if found.trail is not None:  # from a block before this one
            trail.found = found.trail.found
        found.trail = self._mode.trail = self._caster.trail = trail
        found.book.describe = trail.describe
        self._mode.find_site = current_site

    def begin(self) -> None:
        if EmulatedTraining._under_way is not None:
            raise RuntimeError("emulate: inside of another emulation's block; leave that first")
        set_thread_count(torch.get_num_threads())
        try:
            self._set_hooks()
            self._mode.__enter__()
            self._undo.append(lambda: self._mode.__exit__(None, None, None))
            self._follow_casts()
            self._begin_step()
        except BaseException:
            self.end()
            raise
        EmulatedTraining._under_way = self

    def _set_hooks(self) -> None:
        model, optimizers, scaler = self._trainee.model, self._trainee.optimizers, self._trainee.scaler
        halves = self._halves = any(parameter.dtype in HALF for parameter in model.parameters())
        if self._sharding is not None:
            halves = halves or self._sharding.has_type(HALF)
            self._share(self._sharding)
        decompose = backends.decompose_fused_layers if self._rounds or halves else backends.decompose_in_autocast
        self._undo += decompose(self._attention)
        # Under FP32 too: the script may have tensors of 16 bits, by its own casts or by autocast.
        self._undo.append(model.register_forward_pre_hook(WeakHook(self._before_forward)).remove)
        self._places.begin()
        self._undo.append(self._places.end)
        if self._rounds:
            self._set_wire(model)
        if self._rounds or self._found.zeros is not None:
            self._round_gradients(self._parameters.all())
        if self._options.gradient_accumulator is not None:
            self._accumulate(self._options.gradient_accumulator)
        if halves or self._narrow_updates:
            self._undo += backends.step_one_by_one(optimizers)
        for place, optimizer in enumerate(optimizers):
            before = lambda closure, place=place: self._before_update(place, closure)  # noqa: E731
            after = lambda place=place: self._after_update(place)  # noqa: E731
            self._undo.append(StepHooks(optimizer, before, after).remove)
        if scaler is not None:
            self._undo.append(wrap_method(scaler, "update", self._update_scale))
            self._undo.append(self._found.scaler.optimizers.follow(scaler, optimizers, model))

    def _accumulate(self, quantizer: str) -> None:
        """Has gradients added up in a format."""
        if self._sharding is not None:
            raise ValueError("emulate: gradient_accumulator of a model that ranks share; they add up shards in FP32")
        self._accumulator = GradientAccumulator(quantizer, self._caster, self._found.additions)
        self._undo += self._accumulator.follow(self._parameters.all())

    def _follow_casts(self) -> None:
        """Has the model's own casts act as they would in 16 bits."""
        if not self._rounds:
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

    def _round_gradients(self, parameters: list[Owned]) -> None:
        """Rounds gradients of parameters on arrival; of sharded ones before the ranks' gradients are added up."""
        for owned in parameters:
            used = owned.used
            if used is not None and used.requires_grad and id(used) not in self._hooked:
                self._undo.append(used.register_hook(WeakHook(self._weight_gradient, owned)).remove)
                self._hooked[id(used)] = used

    def _share(self, sharding: Sharding) -> None:
        """Follows a model of which each rank has a part."""
        self._undo += sharding.begin(self._gathered)
        wire = ReduceScatter(sharding, self._policy.base.weight_gradient, self._caster)
        self._mode.shards = ShardOperations(sharding, wire, self._caster)
        self._found.wire = wire
        is_first = torch.distributed.get_rank(sharding.group) == 0
        self._found.book.shards = ShardCounts(is_first, frozenset(sharding.parameters))

    def _gathered(self, whole: list[ShardedParameter]) -> None:
        found = self._parameters.gathered(whole)
        if self._rounds:
            self._round_gradients(found)

    def _set_wire(self, model: torch.nn.Module) -> None:
        if not is_data_parallel(model):
            return
        quantizer = self._policy.base.weight_gradient
        wire = self._mode.wire = Wire(model, quantizer, self._caster)
        self._places.after_backward = wire.receive
        self._found.wire = wire

    def end(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        self._mode.shadows = self._mode.zeros = self._places.after_node = None
        if self._found.trail is not None:
            self._found.trail.begin_step(is_open=False)
        EmulatedTraining._under_way = None

    def log(self, loss: float) -> None:
        """The loss of the step under way, or of the one that has just ended."""
        if self._found.records.lacks_loss():
            self._found.records.log_late(loss)
        else:
            self._loss = loss

    def _before_forward(self, *_: Any) -> None:
        self._found.book.enabled = torch.is_grad_enabled()
        self._parameters.refresh_if_moved()

    def _weight_gradient(self, owned: Owned, gradient: torch.Tensor) -> torch.Tensor:
        self._found.book.enabled = True
        if self._mode.zeros is None:
            rounded = self._mode.weight_gradient(owned, gradient)
        else:
            rounded = self._mode.zeros.count(owned.name, gradient, lambda: self._mode.weight_gradient(owned, gradient))
        if self._mode.shadows is not None:
            self._mode.shadows.compare("weight_gradient", owned.name, rounded, gradient)
        return rounded

    def _before_update(self, place: int, closure: bool) -> None:
        self._places.begin_update()
        self._mode.updates.begin()
        if self._trainee.scaler is not None and place == 0:
            gradients = [owned.tensor.grad for owned in self._parameters.all() if owned.tensor.grad is not None]
            self._found.scaler.see_gradients(gradients, self._trainee.scale())
        if self._counts_updates():
            self._weights[place].keep(closure)

    def _counts_updates(self) -> bool:
        """Whether the updates of the step are counted for the format that no weight is stored in."""
        counts = self._rounds or self._halves
        return counts and not self._narrow_updates and self._found.book.seen is not None

    def _after_update(self, place: int) -> None:
        self._places.end_update()
        self._parameters.forget_copies()
        self._stepped = True
        self._found.scaler.optimizers.stepped.add(place)
        seen = self._found.book.seen
        if seen is not None and self._counts_updates():
            self._weights[place].count_updates(seen)
        if self._trainee.scaler is None and place == len(self._trainee.optimizers) - 1:
            self._end_step(1.0)

    def _update_scale(self, update: Callable, *arguments: Any, **options: Any) -> Any:
        scale = self._trainee.scale()
        result = update(*arguments, **options)
        if self._undo:
            self._end_step(scale)
        return result

    def _begin_step(self) -> None:
        found = self._found
        found.book.begin_step(found.steps + 1, self._trainee.scale())
        if found.trail is not None:
            found.trail.begin_step(found.book.seeks_fault)
        self._caster.begin_step()
        self._mode.begin_step()
        if self._accumulator is not None:
            self._accumulator.begin_step()
        compares = self._rounds and (found.steps + 1 in self._options.compare_steps or self._postponed is not None)
        found.comparison.has_floor = self._options.floor
        self._mode.shadows = Shadows(found.comparison, found.steps + 1, self._places, self._mode) if compares else None
        self._caster.see = found.comparison.note_cast if compares and self._options.floor else None
        if compares and found.observe is not None:
            found.observe(self._mode.shadows, self._mode)
        if found.zeros is not None:
            self._mode.zeros = ZeroCauses(found.zeros, self._places, self._mode)
        self._stepped = False

    def _postpone_comparison(self) -> None:
        """A skipped step is compared in the next one that is taken: its gradients are infinite."""
        step, comparison = self._found.steps, self._found.comparison
        if self._mode.shadows is None:
            return
        asked = step if self._postponed is None else self._postponed
        if not self._stepped:
            comparison.drop(step)
            self._postponed = asked
        elif self._postponed is not None:
            comparison.instead[asked], self._postponed = step, None

    def _end_step(self, scale: float) -> None:
        found, seen = self._found, self._found.book.seen
        found.steps += 1
        found.skipped += not self._stepped
        found.book.end_step(self._stepped)
        found.operands.end_step(group_of(self._trainee.model))
        rates = [group["lr"] for group in self._trainee.optimizers[0].param_groups]
        record: dict[str, Any] = {
            "step": found.steps, "loss": self._loss, "metric": None, "scale": scale, "skipped": not self._stepped,
            "learning_rate": float(rates[0]),
        }  # fmt: skip
        self._loss = None
        if self._trainee.scaler is not None:
            found.scaler.end(self._stepped, scale, float(rates[0]))
            self._postpone_comparison()
        if seen is not None:
            seen.finish()
        if self._sharding is not None:
            add_up(found.book, self._sharding.group)
        if seen is not None:
            found.totals.add(seen)
        found.records.add(record, seen)
        self._begin_step()
