"""Hooks on a model and its optimizers that count the tensors of watched steps and tell when a step ends."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import torch

from halfscope._core import set_thread_count
from halfscope.torch.counts.counter import Seen, Totals
from halfscope.torch.counts.histograms import AT_OPTIMIZER
from halfscope.torch.counts.optimizer_states import OptimizerStates
from halfscope.torch.counts.ranks import Alone, Ranks
from halfscope.torch.steps.backward_gradients import BackwardGradients, hook_gradient
from halfscope.torch.steps.fused_optimizer import scale_left, will_skip
from halfscope.torch.steps.optimizers import StepHooks, parameters_of, stepping_scaler
from halfscope.torch.steps.records import Records
from halfscope.torch.steps.scaler_steps import ScalerSteps
from halfscope.torch.watch.layers import Layers
from halfscope.torch.watch.operations import OperationWatch
from halfscope.torch.watch.plan import Plan, Trainers
from halfscope.torch.weak_hooks import WeakHook
from halfscope.torch.wrapping import wrap_method

# Takes the mode off again where a forward pass ends in an error; older PyTorch has no such hook.
ALWAYS = {"always_call": True} if "always_call" in signature(torch.nn.Module.register_forward_hook).parameters else {}


class Book(NamedTuple):
    """Where the observations of a step go when it ends."""

    ranks: Alone | Ranks
    totals: Totals
    records: Records


class StepWatcher:
    """Counts the tensors of watched steps; `start` sets the hooks.

    Raises ValueError where nothing is left to watch and where the optimizers have no parameter of the model.
    """

    def __init__(self, model: torch.nn.Module, plan: Plan, trainers: Trainers) -> None:
        self._plan, self._optimizers, self._scaler = plan, trainers.optimizers, trainers.scaler
        self.layers = Layers(model, plan.choice, self._after_forward)
        self.parameters = {
            name: parameter
            for name, parameter in model.named_parameters()
            if name in plan.choice and parameter.is_floating_point()
        }
        if not self.layers.named() and not self.parameters:
            raise ValueError("watch: no layer and no parameter has a name that include and exclude leave")
        owned = list(map(self._owned_by, self._optimizers))
        self._weights = list(map(plan.counter.weights, owned))
        self._states = list(map(OptimizerStates, self._optimizers, owned)) if plan.optimizer_state else []
        trained = set().union(*map(parameters_of, self._optimizers))
        if not any(id(parameter) in trained for parameter in model.parameters()):
            raise ValueError("watch: optimizer has none of the model's parameters; give the one that trains this model")
        self.unowned = [name for name, p in self.parameters.items() if p.requires_grad and id(p) not in trained]
        self._gradients = BackwardGradients(self.parameters, self._after_backward_pass)
        self.steps = self.optimizer_steps = 0
        self.scaler_steps = ScalerSteps()
        self.unknown_scale: float | None = None
        self.operations: OperationWatch | None = None  # where the forward pass can be followed
        self._looks_at_operations = False
        self._closers: list[Callable[[], None]] = []
        self._seen: Seen | None = None
        self._loss: float | None = None  # loss of the step under way, as is the scale
        self._known_scale: float | None = None

    def _owned_by(self, optimizer: Any) -> dict[str, torch.nn.Parameter]:
        owned = parameters_of(optimizer)
        return {name: parameter for name, parameter in self.parameters.items() if id(parameter) in owned}

    def start(self, model: torch.nn.Module, book: Book) -> None:
        """Sets the hooks that stay for all steps."""
        self._ranks, self._totals, self._records = book
        for place, optimizer in enumerate(self._optimizers):
            before = lambda closure, place=place: self._before_optimizer(place, closure)  # noqa: E731
            after = lambda place=place: self._after_optimizer(place)  # noqa: E731
            self._closers.append(StepHooks(optimizer, before, after).remove)
        if self._scaler is not None:
            self._closers.append(wrap_method(self._scaler, "update", self._update_scale))
            self._closers.append(self.scaler_steps.optimizers.follow(self._scaler, self._optimizers, model))
        if not self.layers.compiled():
            self._closers.append(model.register_forward_pre_hook(WeakHook(self._before_forward)).remove)
            if self._plan.operations and ALWAYS:
                self.operations = OperationWatch(self._plan.format)
                self.layers.operations = self.operations.layers
                self._closers.append(model.register_forward_hook(WeakHook(self._after_model), **ALWAYS).remove)
        self._begin_step()

    def close(self) -> bool:
        """Takes the hooks away; whether there were any. The copies of the weights go too."""
        if not self._closers:
            return False
        for close in self._closers:
            close()
        self._closers = []
        self._unhook_step()
        self._seen = None
        for weights in self._weights:
            weights.release()
        return True

    def log(self, loss: float) -> None:
        """The loss of the step under way, or after its end, before the next forward pass, of the one just ended."""
        if not self._forward_begun and self._records.lacks_loss():
            self._records.log_late(loss)
        else:
            self._loss = loss

    def _observes(self) -> bool:
        """Whether the step that begins now is watched."""
        return self.steps == 0 or (self.steps + 1) % self._plan.every == 0

    def _begin_step(self) -> None:
        self._seen = self._plan.counter.observe() if self._observes() else None
        self._stepped = self._forward_begun = False
        self._loss = self._known_scale = None
        if self._seen is None:
            self._unhook_step()
            return
        set_thread_count(torch.get_num_threads())
        self.layers.hook()
        self._gradients.hook()

    def _unhook_step(self) -> None:
        self.layers.unhook()
        self._gradients.unhook()

    def _scale(self) -> float:
        """Loss scale of this step."""
        if self._known_scale is None:
            self._known_scale = 1.0 if self._scaler is None else float(self._scaler.get_scale())
        return self._known_scale

    def _before_forward(self, model: torch.nn.Module, *_: object) -> None:
        trains = torch.is_grad_enabled()
        self._forward_begun = self._forward_begun or trains
        looks = self.operations is not None and self._seen is not None and trains
        if looks and not self._looks_at_operations and not _is_compiling():
            assert self.operations is not None
            self.operations.begin(model, self.steps + 1)
            self.operations.__enter__()
            self.operations.layers.begin()
            self._looks_at_operations = True

    def _after_model(self, *_: object) -> None:
        if self.operations is not None and self._looks_at_operations:
            self._looks_at_operations = False
            self.operations.layers.end()
            self.operations.__exit__(None, None, None)
            self.operations.end()

    def _after_forward(self, name: str, tensor: torch.Tensor) -> None:
        if self._seen is None:
            return
        self._seen.count("activation", name, tensor)
        if tensor.requires_grad:
            hook_gradient(tensor, WeakHook(self._after_backward, self._seen, (name, self._scale(), tensor.output_nr)))

    def _after_backward(self, seen: Seen, about: tuple[str, float, int], gradients: Any) -> None:
        """gradients: of all results of an operation, or, of a leaf, its gradient."""
        name, scale, place = about
        gradient = gradients[place] if isinstance(gradients, tuple) else gradients
        if gradient is not None:
            seen.count("activation_gradient", name, gradient, scale)

    def _after_backward_pass(self, gradients: dict[str, torch.Tensor]) -> None:
        if self._seen is not None:
            self._seen.recount("weight_gradient", gradients, self._scale())

    def _before_optimizer(self, place: int, closure: bool) -> None:
        """A look at gradients and weights; a closure makes and clips its gradients only inside of the step."""
        optimizer = self._optimizers[place]
        self._skips = self._records_step() and will_skip(optimizer)
        if self._seen is None:
            return
        if self._scaler is None and self.unknown_scale is None:
            unknown = stepping_scaler()
            self.unknown_scale = None if unknown is None else float(unknown.get_scale())
        self._looks_after = closure
        if not closure:
            self._count_at_optimizer(place, scale_left(optimizer))
            if self._scaler is not None and place == 0 and scale_left(optimizer) == 1:
                gradients = [p.grad for p in self._weights[place].parameters.values() if p.grad is not None]
                self.scaler_steps.see_gradients(gradients, self._scale())
        self._weights[place].keep(closure)

    def _count_at_optimizer(self, place: int, scale: float) -> None:
        """Gradients that no backward pass made, such as those set by hand, count as weight gradients."""
        assert self._seen is not None
        owned = self._weights[place].parameters
        gradients = {name: parameter.grad for name, parameter in owned.items() if parameter.grad is not None}
        by_hand = {name: grad for name, grad in gradients.items() if not self._gradients.handed_over(name)}
        changed = {
            name: grad
            for name, grad in gradients.items()
            if name not in by_hand and not self._gradients.unchanged(name, grad)
        }
        self._seen.count_all("weight_gradient", by_hand, scale)
        self._seen.recount(AT_OPTIMIZER, changed, scale)

    def _after_optimizer(self, place: int) -> None:
        self.optimizer_steps += 1
        if not self._skips:
            self._stepped = True
            self.scaler_steps.optimizers.stepped.add(place)
        if self._seen is not None and self._looks_after:
            self._count_at_optimizer(place, scale_left(self._optimizers[place]))
        if self._seen is not None and not self._skips:
            self._weights[place].count_updates(self._seen)
            if self._states:
                self._states[place].count(self._seen)
        if self._scaler is None and place == len(self._optimizers) - 1:
            self._end_step(1.0)

    def _update_scale(self, update: Callable, *arguments: Any, **options: Any) -> Any:
        """The scaler's update, which ends the step: it was skipped where the optimizer did not step."""
        if not self._closers:
            return update(*arguments, **options)
        asks = self._records_step() or not self._stepped  # which waits for a GPU
        scale = self._scale() if asks else 1.0
        result = update(*arguments, **options)
        self.scaler_steps.end(self._stepped, scale, float(self._optimizers[0].param_groups[0]["lr"]))
        self._end_step(scale)
        return result

    def _records_step(self) -> bool:
        return self._records.wants_all_steps or self._seen is not None

    def _end_step(self, scale: float) -> None:
        self.steps += 1
        if self._records_step():
            self._record_step(scale)
        self._begin_step()

    def _record_step(self, scale: float) -> None:
        rates = [group["lr"] for group in self._optimizers[0].param_groups]
        record: dict[str, Any] = {
            "step": self.steps, "loss": self._loss, "metric": None, "scale": scale, "skipped": not self._stepped,
            "learning_rate": float(rates[0]),
        }  # fmt: skip
        if self._seen is not None:
            self._seen.finish()
            self._ranks.merge(self._seen, scale)
            self._totals.add(self._seen)
        self._records.add(record, self._seen)


def _is_compiling() -> bool:
    """Whether torch.compile traces this hook."""
    asked = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    return bool(asked()) if asked is not None else False
