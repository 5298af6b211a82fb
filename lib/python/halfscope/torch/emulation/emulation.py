"""Training of a PyTorch model in emulated formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

import torch

from halfscope import ScaleAdvice
from halfscope._core import set_thread_count
from halfscope.torch.emulation import backends
from halfscope.torch.emulation.arithmetic import EmulatedArithmetic
from halfscope.torch.emulation.bisection import Bisection, Snapshot, bisect
from halfscope.torch.emulation.book import Book
from halfscope.torch.emulation.casts import Caster
from halfscope.torch.emulation.parameters import Owned, Parameters
from halfscope.torch.emulation.places import Places
from halfscope.torch.emulation.policies import FP32, Policy
from halfscope.torch.emulation.report import report_text
from halfscope.torch.emulation.shadows import Comparison, Shadows
from halfscope.torch.steps import StepHooks, optimizers_of
from halfscope.torch.totals import Totals
from halfscope.torch.weak_hooks import WeakHook
from halfscope.torch.wrapping import wrap_method


def emulate(
    model: torch.nn.Module,
    policy: str | Mapping[str, str],
    *,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer],
    scaler: Any = None,
    accumulate: str | None = None,
    rules: Mapping[str, Any] | None = None,
    seed: int = 0,
    strict: bool = True,
    every: int = 10,
    compare_steps: Iterable[int] = (1, 10, 100, 1000),
) -> Emulation:
    """Trains `model` in the formats of `policy` inside of a `with` block, whatever the training loop is.

    Every operation of the model's forward and backward pass, and of the optimizer's step, is computed exactly as
    hardware of these formats would: operands and results are rounded to the format of their role, matrix products and
    convolutions are summed in the order of a model. What the loop does outside of the model, such as the loss, is FP32.

    policy: a name of `halfscope list policies`; a format such as "bf16" or "fp8_e4m3" for the tensors of the network
        beside FP32 master weights; or a mapping of roles (weight, activation, activation_gradient, weight_gradient,
        master_weight, optimizer_state) to formats. Tensors that are FP16 or BF16 already keep that type.
    optimizer: one, or all that train the model.
    scaler: the GradScaler, where there is one; a step then ends with its `update()`.
    accumulate: the order of products, as `halfscope list accumulators` has them, or "pytorch" for PyTorch's own FP32
        sums of rounded operands; by default that of the policy.
    rules: by pattern of module names, as in a shell, another format, or a mapping of roles, also "accumulate".
    seed: of stochastic rounding.
    strict: refuses an operation that has no rule; else its result is rounded once, with a warning.
    every: histograms are taken on the first and every `every`-th step; casts are counted on all.
    compare_steps: the steps, from 1, on which every tensor is compared with an FP32 run of the same step.

    Raises ValueError for an unknown policy, format or accumulation model and for a rule that matches no module;
    TypeError for arguments of other types, compiled modules and DataParallel.
    """
    policy_of = Policy(policy, accumulate, rules or {})
    _check_model(model)
    if every < 1:
        raise ValueError(f"emulate: every={every}; give 1 or more steps")
    return Emulation(
        model, policy_of, (optimizers_of(optimizer), scaler), (seed, strict, every, frozenset(compare_steps))
    )


class Emulation:
    """Result of `emulate`: a context manager, and afterwards what it has counted."""

    def __init__(self, model: torch.nn.Module, policy: Policy, trainers: tuple[list[Any], Any], options: tuple) -> None:
        policy.check_rules([name for name, _ in model.named_modules()])
        self._model, self._policy = model, policy
        self._optimizers, self._scaler = trainers
        self._seed, self._strict, every, self._compared = options
        self._book = Book(every)
        self._totals = Totals("fp16")
        self._comparison = Comparison()
        self._undo: list[Callable[[], None]] = []
        self._before: Snapshot | None = None
        self._steps = 0

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self._steps

    def __enter__(self) -> Emulation:
        if self._undo:
            raise RuntimeError("emulate: entered already")
        self._before = self._before or Snapshot.of(self._model, self._optimizers, self._scaler)
        set_thread_count(torch.get_num_threads())
        places = self._places = Places(self._model, self._policy)
        caster = self._caster = Caster(self._book, self._seed)
        parameters = self._parameters = Parameters(self._model, self._policy, caster)
        self._mode = EmulatedArithmetic(self._policy, places, caster, parameters, self._strict)
        try:
            self._set_hooks(places)
            self._mode.__enter__()
            self._undo.append(lambda: self._mode.__exit__(None, None, None))
        except BaseException:
            self._close()
            raise
        self._begin_step()
        return self

    def _set_hooks(self, places: Places) -> None:
        formats = [self._policy.base, *(self._policy.at(name) for name, _ in places.modules())]
        if any(own.rounds for own in formats):
            self._undo += backends.decompose_fused_layers()
            self._undo.append(self._model.register_forward_pre_hook(WeakHook(self._before_forward)).remove)
            places.begin()
            self._undo.append(places.end)
            for owned in self._parameters.all():
                if owned.tensor.requires_grad:
                    hook = owned.tensor.register_hook(WeakHook(self._weight_gradient, owned))
                    self._undo.append(hook.remove)
        if any(own.optimizer_state != FP32 or own.master_weight != FP32 for own in formats):
            self._undo += backends.step_one_by_one(self._optimizers)
        for place, optimizer in enumerate(self._optimizers):
            after = lambda place=place: self._after_update(place)  # noqa: E731
            self._undo.append(StepHooks(optimizer, self._before_update, after).remove)
        if self._scaler is not None:
            self._undo.append(wrap_method(self._scaler, "update", self._update_scale))

    def __exit__(self, _kind: type | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        self._mode.shadows = None

    def _before_forward(self, *_: Any) -> None:
        self._book.enabled = torch.is_grad_enabled()
        self._parameters.refresh_if_moved()

    def _weight_gradient(self, owned: Owned, gradient: torch.Tensor) -> torch.Tensor:
        self._book.enabled = True
        rounded = self._mode.weight_gradient(owned, gradient)
        if self._mode.shadows is not None:
            self._mode.shadows.compare("weight_gradient", owned.name, rounded, gradient)
        return rounded

    def _before_update(self, _closure: bool) -> None:
        self._places.begin_update()
        self._mode.updates.begin()

    def _after_update(self, place: int) -> None:
        self._places.end_update()
        self._parameters.forget_copies()
        if self._scaler is None and place == len(self._optimizers) - 1:
            self._end_step()

    def _update_scale(self, update: Callable, *arguments: Any, **options: Any) -> Any:
        result = update(*arguments, **options)
        if self._undo:
            self._end_step()
        return result

    def _begin_step(self) -> None:
        scale = 1.0 if self._scaler is None else float(self._scaler.get_scale())
        self._book.begin_step(scale)
        self._caster.begin_step()
        self._mode.begin_step()
        compares = self._steps + 1 in self._compared and self._policy.base.rounds
        self._mode.shadows = (
            Shadows(self._comparison, self._steps + 1, self._places, self._mode.marks) if compares else None
        )

    def _end_step(self) -> None:
        self._steps += 1
        if self._book.seen is not None:
            self._book.seen.finish()
            self._totals.add(self._book.seen)
        self._book.step = self._steps + 1
        self._begin_step()

    def verdict(self) -> str:
        """The text that `report` prints."""
        return report_text(self._policy, self._book, self._steps)

    def report(self) -> None:
        """Prints in words what was rounded: casts by role, the first overflow, lost updates."""
        print(self.verdict())

    def casts(self) -> dict[tuple[str, str], Any]:
        """By role and tensor: the elements cast, and how many were flushed, made subnormal or overflowed."""
        return dict(self._book.totals)

    @property
    def first_overflow(self) -> Any:
        """Step, tensor and role of the first number that is not finite; None where all are."""
        return self._book.first_overflow

    def histograms(self, role: str) -> dict[str, Any]:
        """By tensor, all watched steps together, of the exact numbers before their rounding to FP16."""
        return self._totals.histograms(role)

    def advise_scale(self, **options: Any) -> ScaleAdvice:
        """`halfscope.advise_scale` of the gradients that were rounded; options as it has."""
        return self._totals.advise_scale(**options)

    def compare_to(self, policy: str = FP32, steps: Iterable[int] | None = None) -> Comparison:
        """Error and cosine of every tensor beside the same step in FP32, from the same weights, of compared steps.

        Raises ValueError for another policy than fp32, and for steps that `emulate` was not told to compare.
        """
        if policy != FP32:
            raise ValueError(f"compare_to: {policy!r}; steps are compared with 'fp32'")
        return self._comparison.of_steps(steps)

    def bisect(self, accepts: Callable[[], bool], *, layers: Iterable[str] | None = None) -> Bisection:
        """The fewest layers that must stay in FP32 for `accepts` to return True.

        accepts: trains the model and says whether the result will do. Each call starts from the weights, the
            optimizer's state and the random numbers that there were when the emulation was entered.
        layers: names of modules; by default those with parameters of their own.

        Raises ValueError where it will not do with all of them in FP32, and for an unknown name.
        """
        if self._undo or self._before is None:
            raise RuntimeError("bisect: leave the block of emulate first" if self._undo else "bisect: enter it first")
        return bisect(self, accepts, layers)

    def layers(self) -> list[str]:
        """Names of the modules with parameters of their own, in the order of the model."""
        return [name for name, module in self._model.named_modules() if module._parameters]

    def checked_layers(self, layers: Iterable[str]) -> list[str]:
        """`layers`; raises ValueError for one that the model does not have."""
        wanted, known = list(layers), dict(self._model.named_modules())
        for name in wanted:
            if name not in known:
                raise ValueError(f"bisect: no module '{name}'; the layers are {', '.join(self.layers())}")
        return wanted

    def train_with_fp32(self, layers: list[str], train: Callable[[], Any]) -> bool:
        """Whether `train` returns True, from the beginning, with these modules in FP32."""
        assert self._before is not None
        self._before.restore(self._model, self._optimizers, self._scaler)
        options = (self._seed, self._strict, self._book.every, frozenset())
        policy = self._policy.keeping_fp32(layers)
        with Emulation(self._model, policy, (self._optimizers, self._scaler), options):
            return bool(train())


def _check_model(model: torch.nn.Module) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"emulate: model={model!r}; give a module of PyTorch")
    for name, module in model.named_modules():
        label = f"'{name}'" if name else "the model"
        if hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None:
            raise TypeError(f"emulate: {label} is compiled, which hides its operations; give the module itself")
        if isinstance(module, torch.nn.DataParallel):
            raise TypeError(f"emulate: {label} is DataParallel, whose threads are not followed; give its module")
        if isinstance(module, torch.jit.ScriptModule):
            raise TypeError(f"emulate: {label} is a script, which hides its operations; give the module itself")
