"""Hooks on a model and its optimizers that count the tensors of watched steps and tell when a step ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from halfscope._core import set_thread_count
from halfscope.torch.counts.counter import StepCounts, Totals
from halfscope.torch.counts.histograms import AT_OPTIMIZER
from halfscope.torch.counts.optimizer_states import OptimizerStates
from halfscope.torch.counts.ranks import Alone, Ranks, dtensor_in_use
from halfscope.torch.private import is_compiling, is_in_transform
from halfscope.torch.steps.backward_gradients import BackwardGradients, hook_gradient
from halfscope.torch.steps.fused_optimizer import scale_left
from halfscope.torch.steps.optimizers import parameters_of, stepping_scaler
from halfscope.torch.steps.records import Records
from halfscope.torch.steps.trainee import Trainee
from halfscope.torch.steps.training_steps import Record, Tally, TrainingSteps
from halfscope.torch.watch.layers import Layers
from halfscope.torch.watch.operations import OperationWatch
from halfscope.torch.watch.plan import Plan
from halfscope.torch.weak_hooks import WeakHook


class Book(NamedTuple):
    """Destination of a step's observations when it ends."""

    ranks: Alone | Ranks
    totals: Totals
    records: Records


class StepWatcher:
    """Counts the tensors of watched steps, as the listener of a training's steps; `start` sets the hooks.

    Raises ValueError where nothing is left to watch and where the optimizers have no parameter of the model.
    """

    def __init__(self, trainee: Trainee, plan: Plan) -> None:
        model = trainee.model
        self._trainee, self._plan, self._optimizers = trainee, plan, trainee.optimizers
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
        self.tally = Tally()
        self.unknown_scale: float | None = None
        self.operations: OperationWatch | None = None  # where the forward pass can be followed
        self.dtensor = dtensor_in_use(model) if plan.operations else None  # for which operations are not followed
        self._looks_at_operations = False
        self._closers: list[Callable[[], None]] = []
        self._seen: StepCounts | None = None
        self._looks_after = False  # at the gradients of an update: a closure makes them inside of it

    def _owned_by(self, optimizer: Any) -> dict[str, torch.nn.Parameter]:
        owned = parameters_of(optimizer)
        return {name: parameter for name, parameter in self.parameters.items() if id(parameter) in owned}

    def start(self, book: Book) -> None:
        """Sets the hooks that stay for all steps."""
        self._ranks, self._totals, self._records = book
        self._steps = TrainingSteps(self._trainee, self.tally, self._records, self)
        if not self.layers.compiled():
            self._steps.follow_model()
            if self._plan.operations and self.dtensor is None:
                self._follow_operations(self._trainee.model)
        self._steps.start()
        self._closers.append(self._steps.close)

    def _follow_operations(self, model: torch.nn.Module) -> None:
        self.operations = OperationWatch(self._plan.format)
        self.layers.look_at(self.operations.layers)
        before = model.register_forward_pre_hook(WeakHook(self._before_model), with_kwargs=True)
        self._closers.append(before.remove)
        # Takes the mode off again where a forward pass ends in an error.
        self._closers.append(model.register_forward_hook(WeakHook(self._after_model), always_call=True).remove)

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
        """The loss of a step: of which, `TrainingSteps.log` says."""
        self._steps.log(loss)

    def _observes(self) -> bool:
        """Whether the step that begins now is watched."""
        return self.tally.steps == 0 or (self.tally.steps + 1) % self._plan.every == 0

    def begin_step(self) -> None:
        self._seen = self._plan.counter.observe() if self._observes() else None
        if self._seen is None:
            self._unhook_step()
            return
        set_thread_count(torch.get_num_threads())
        self.layers.hook()
        self._gradients.hook()

    def _unhook_step(self) -> None:
        self.layers.unhook()
        self._gradients.unhook()

    def abandon_step(self) -> None:
        """Drops the counts of a step that ended in an error."""
        self._seen = None

    def _before_model(self, model: torch.nn.Module, *inputs: object) -> None:
        looks = self.operations is not None and self._seen is not None and torch.is_grad_enabled()
        if looks and not self._looks_at_operations and not is_compiling() and not is_in_transform():
            assert self.operations is not None
            self.operations.begin(model, self.tally.steps + 1, inputs)
            self.operations.__enter__()
            self.operations.layers.begin()
            self._looks_at_operations = True

    def _after_model(self, _model: torch.nn.Module, _inputs: tuple, output: Any) -> None:
        if self.operations is not None and self._looks_at_operations:
            self._looks_at_operations = False
            self.operations.layers.end()
            self.operations.__exit__(None, None, None)
            self.operations.end(output)

    def _after_forward(self, name: str, tensor: torch.Tensor) -> None:
        if self._seen is None:
            return
        self._seen.count("activation", name, tensor)
        if tensor.requires_grad:
            about = name, self._steps.scale(), tensor.output_nr
            hook_gradient(tensor, WeakHook(self._after_backward, self._seen, about))

    def _after_backward(self, seen: StepCounts, about: tuple[str, float, int], gradients: Any) -> None:
        """gradients: of all results of an operation, or, of a leaf, its gradient."""
        name, scale, place = about
        gradient = gradients[place] if isinstance(gradients, tuple) else gradients
        if gradient is not None:
            seen.count("activation_gradient", name, gradient, scale)

    def _after_backward_pass(self, gradients: dict[str, torch.Tensor]) -> None:
        if self._seen is not None:
            self._seen.recount("weight_gradient", gradients, self._steps.scale())

    def before_update(self, place: int, has_closure: bool) -> None:
        """A look at gradients and weights; a closure makes and clips its gradients only inside of the step."""
        optimizer, scaler = self._optimizers[place], self._trainee.scaler
        if self._seen is None:
            return
        if scaler is None and self.unknown_scale is None:
            unknown = stepping_scaler()
            self.unknown_scale = None if unknown is None else float(unknown.get_scale())
        self._looks_after = has_closure
        if not has_closure:
            self._count_at_optimizer(place, scale_left(optimizer))
            if scaler is not None and place == 0 and scale_left(optimizer) == 1:
                gradients = [p.grad for p in self._weights[place].parameters.values() if p.grad is not None]
                self.tally.scaler.see_gradients(gradients, self._steps.scale())
        self._weights[place].keep(has_closure)

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

    def after_update(self, place: int, skipped: bool) -> None:
        if self._seen is not None and self._looks_after:
            self._count_at_optimizer(place, scale_left(self._optimizers[place]))
        if self._seen is not None and not skipped:
            self._weights[place].count_updates(self._seen)
            if self._states:
                self._states[place].count(self._seen)

    @property
    def records_step(self) -> bool:
        return self._records.wants_all_steps or self._seen is not None

    def end_step(self, stepped: bool, record: Record | None) -> None:
        if record is None:
            return
        if self._seen is not None:
            self._seen.finish()
            self._ranks.merge(self._seen, record["scale"])
            self._totals.add(self._seen)
        self._records.add(record, self._seen)
