"""Watches a PyTorch model while it trains: exact histograms of what its tensors hold, and which updates FP16 loses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from halfscope import Histogram, ScaleAdvice
from halfscope._core import set_thread_count
from halfscope.torch.arguments import Outputs, Trainers
from halfscope.torch.backward_gradients import BackwardGradients
from halfscope.torch.fused_optimizer import scale_left, will_skip
from halfscope.torch.layers import Layers
from halfscope.torch.observations import AT_OPTIMIZER, Observations
from halfscope.torch.ranks import ranks_of
from halfscope.torch.records import Records
from halfscope.torch.steps import StepHooks, parameters_of, stepping_scaler
from halfscope.torch.tensors import Choice
from halfscope.torch.totals import ROLES, Totals, together
from halfscope.torch.verdict import Circumstances, verdict
from halfscope.torch.weak_hooks import WeakHook
from halfscope.torch.weights import Weights
from halfscope.torch.wrapping import wrap_method


def watch(
    model: torch.nn.Module,
    every: int = 10,
    include: str | Iterable[str] = "*",
    exclude: str | Iterable[str] = (),
    *,
    optimizer: torch.optim.Optimizer | Iterable[torch.optim.Optimizer],
    scaler: Any = None,
    out: Path | str | None = None,
    tensorboard: Path | str | object | None = None,
    ranks: Any = "together",
) -> Watch:
    """Watches `model` from now on: on the first and every `every`-th step, what FP16 would do to its tensors.

    Counted are the outputs of all layers without layers in them, the gradients of these outputs and of the weights as
    the backward pass makes them (both carry the loss scale), the weights' gradients once more where something changed
    them before the optimizer got them, and the updates that `optimizer` makes. Nothing is changed.

    include, exclude: patterns, as in a shell, of the layers' and parameters' names: "encoder.*". A pattern that does
        not end in "*" as a whole name, such as "*.self_attn", also chooses modules with layers in them.
    optimizer: one, or all that train the model; a step then ends with the `step` of the last one.
    scaler: the GradScaler, where there is one; a step then ends with its `update()`.
    out: a folder that gets the records of the run, for `tools/figures` and `halfscope.results.read_experiment`.
    tensorboard: a folder, or a SummaryWriter, that gets histograms of log2 |x| of every tensor watched.
    ranks: "together" adds up the counts of all processes of torch.distributed, each of which must watch; a process
        group does so for its own; "alone" counts this process.

    Raises ValueError where `every` is not positive, the patterns leave nothing to watch, no optimizer has a parameter
    of the model, `out` holds a run already or other ranks do not watch; TypeError for arguments of other types;
    ImportError where `tensorboard` is a folder and TensorBoard is not installed.
    """
    return Watch(model, every, Choice(include, exclude), Trainers(optimizer, scaler), Outputs(out, tensorboard, ranks))


class Watch:
    """Result of `watch`; a context manager that closes itself."""

    def __init__(
        self, model: torch.nn.Module, every: int, choice: Choice, trainers: Trainers, outputs: Outputs
    ) -> None:
        if every < 1:
            raise ValueError(f"watch: every={every}; give 1 or more steps")
        self._every, self._optimizers, self._scaler = every, trainers.optimizers, trainers.scaler
        self._layers = Layers(model, choice, self._after_forward)
        self._parameters = {
            name: parameter
            for name, parameter in model.named_parameters()
            if name in choice and parameter.is_floating_point()
        }
        if not self._layers.named() and not self._parameters:
            raise ValueError("watch: no layer and no parameter has a name that include and exclude leave")
        self._weights = [Weights(self._owned_by(optimizer)) for optimizer in self._optimizers]
        trained = set().union(*map(parameters_of, self._optimizers))
        if not any(id(parameter) in trained for parameter in model.parameters()):
            raise ValueError("watch: optimizer has none of the model's parameters; give the one that trains this model")
        self._unowned = [name for name, p in self._parameters.items() if p.requires_grad and id(p) not in trained]
        self._ranks = ranks_of(outputs.ranks, self._layers.named(), self._parameters)
        self._records = Records(outputs.open(self._ranks.first))
        self._gradients = BackwardGradients(self._parameters, self._after_backward_pass)
        self._totals = Totals()
        self._done = self._optimizer_steps = 0
        self._seen: Observations | None = None
        self._loss: float | None = None  # of the step under way, as is the scale
        self._known_scale: float | None = None
        self._unknown_scale: float | None = None
        self._records.begin({"every": every, "loss_scale": "none" if self._scaler is None else "dynamic"})
        self._closers = self._hook(model)
        self._begin_step()

    def _owned_by(self, optimizer: Any) -> dict[str, torch.nn.Parameter]:
        owned = parameters_of(optimizer)
        return {name: parameter for name, parameter in self._parameters.items() if id(parameter) in owned}

    def _hook(self, model: torch.nn.Module) -> list[Callable[[], None]]:
        """Everything that stays for all steps; returns what takes it away."""
        closers = []
        for place, optimizer in enumerate(self._optimizers):
            before = lambda closure, place=place: self._before_optimizer(place, closure)  # noqa: E731
            after = lambda place=place: self._after_optimizer(place)  # noqa: E731
            closers.append(StepHooks(optimizer, before, after).remove)
        if self._scaler is not None:
            closers.append(wrap_method(self._scaler, "update", self._update_scale))
        if not self._layers.compiled():
            closers.append(model.register_forward_pre_hook(WeakHook(self._before_forward)).remove)
        return closers

    @property
    def steps(self) -> int:
        """Steps that have ended."""
        return self._done

    @property
    def layers(self) -> list[str]:
        """Names of the layers that are watched, those added since too."""
        return list(self._layers.named())

    @property
    def unseen(self) -> list[str]:
        """Names of the layers that no watched step has called."""
        return self._layers.unseen()

    def log(self, loss: float | torch.Tensor) -> None:
        """Notes the loss of a step, without the loss scale, for the records' curve.

        It is that of the step under way; after its end, before the next forward pass, of the one that has just ended.
        """
        value = float(loss.detach()) if isinstance(loss, torch.Tensor) else float(loss)
        if not self._forward_begun and self._records.lacks_loss():
            self._records.log_late(value)
        else:
            self._loss = value

    def report(self) -> None:
        """Prints in words what was seen, and which loss scales are usable; of several ranks the first one does."""
        if self._ranks.first:
            print(self.verdict())

    def verdict(self) -> str:
        """The text that `report` prints."""
        layers = self._layers.named()
        about = Circumstances(
            len(layers), self._layers.unseen(), self._layers.compiled(), self._unowned, self._unknown_scale,
            self._optimizer_steps, self._done, self._ranks.size,
        )  # fmt: skip
        return verdict(self._totals, about)

    def histograms(self, role: str = "weight_gradient") -> dict[str, Histogram]:
        """By tensor, all watched steps together, without the loss scale.

        role: "activation", "activation_gradient", "weight_gradient" (in the backward pass), "optimizer_gradient"
        (where the optimizer got another one, such as a clipped one), or "update_ratio" for |update / weight|. Raises
        ValueError for another one.
        """
        if role not in ROLES:
            raise ValueError(f"histograms: role {role!r}; give one of {', '.join(ROLES)}")
        return self._totals.histograms(role)

    def histogram(self, role: str = "weight_gradient") -> Histogram:
        """The same of all tensors together."""
        return together(self.histograms(role).values())

    def advise_scale(self, **options: Any) -> ScaleAdvice:
        """`halfscope.advise_scale` of the gradients of all layers and weights; options as it has them."""
        return self._totals.advise_scale(**options)

    def trace(self) -> list[dict]:
        """The watched steps, for `halfscope.replay`: what other loss scalers would have done."""
        return self._records.trace()

    def close(self) -> None:
        """Takes the hooks away and finishes the records; a second time it does nothing."""
        if self._take_hooks_away():
            self._records.finish(self._done, self.verdict())

    def _take_hooks_away(self) -> bool:
        """Whether there were any. The copies of the weights go too."""
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

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
        elif self._take_hooks_away():
            self._records.fail(error)

    def _observes(self) -> bool:
        """Whether the step that begins now is watched."""
        return self._done == 0 or (self._done + 1) % self._every == 0

    def _begin_step(self) -> None:
        self._seen = Observations() if self._observes() else None
        self._stepped = self._forward_begun = False
        self._loss = self._known_scale = None
        if self._seen is None:
            self._unhook_step()
            return
        set_thread_count(torch.get_num_threads())
        self._layers.hook()
        self._gradients.hook()

    def _unhook_step(self) -> None:
        self._layers.unhook()
        self._gradients.unhook()

    def _scale(self) -> float:
        """Of this step."""
        if self._known_scale is None:
            self._known_scale = 1.0 if self._scaler is None else float(self._scaler.get_scale())
        return self._known_scale

    def _before_forward(self, *_: object) -> None:
        self._forward_begun = self._forward_begun or torch.is_grad_enabled()

    def _after_forward(self, name: str, tensor: torch.Tensor) -> None:
        if self._seen is None:
            return
        self._seen.count("activation", name, tensor)
        if tensor.requires_grad:
            tensor.register_hook(WeakHook(self._after_backward, self._seen, name, self._scale()))

    def _after_backward(self, seen: Observations, name: str, scale: float, gradient: torch.Tensor) -> None:
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
        if self._scaler is None and self._unknown_scale is None:
            unknown = stepping_scaler()
            self._unknown_scale = None if unknown is None else float(unknown.get_scale())
        self._looks_after = closure
        if not closure:
            self._count_at_optimizer(place, scale_left(optimizer))
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
        self._optimizer_steps += 1
        self._stepped = self._stepped or not self._skips
        if self._seen is not None and self._looks_after:
            self._count_at_optimizer(place, scale_left(self._optimizers[place]))
        if self._seen is not None and not self._skips:
            self._weights[place].count_updates(self._seen)
        if self._scaler is None and place == len(self._optimizers) - 1:
            self._end_step(1.0)

    def _update_scale(self, update: Callable, *arguments: Any, **options: Any) -> Any:
        """The scaler's update, which ends the step: it was skipped where the optimizer did not step."""
        if not self._closers:
            return update(*arguments, **options)
        scale = self._scale() if self._records_step() else 1.0  # asking waits for a GPU
        result = update(*arguments, **options)
        self._end_step(scale)
        return result

    def _records_step(self) -> bool:
        return self._records.wants_all_steps or self._seen is not None

    def _end_step(self, scale: float) -> None:
        self._done += 1
        if self._records_step():
            self._record_step(scale)
        self._begin_step()

    def _record_step(self, scale: float) -> None:
        rates = [group["lr"] for group in self._optimizers[0].param_groups]
        record: dict[str, Any] = {
            "step": self._done, "loss": self._loss, "metric": None, "scale": scale, "skipped": not self._stepped,
            "learning_rate": float(rates[0]),
        }  # fmt: skip
        if self._seen is not None:
            self._seen.finish()
            self._ranks.merge(self._seen, scale)
            self._totals.add(self._seen)
        self._records.add(record, self._seen)
