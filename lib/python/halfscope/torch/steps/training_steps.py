"""Steps of a training: where each begins, updates weights and ends, told to one listener."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from halfscope.torch.private import is_compiling, is_in_backward_pass
from halfscope.torch.steps.fused_optimizer import will_skip
from halfscope.torch.steps.optimizers import StepHooks
from halfscope.torch.steps.records import Records
from halfscope.torch.steps.scaler_steps import ScalerSteps
from halfscope.torch.steps.trainee import Trainee
from halfscope.torch.weak_hooks import WeakHook
from halfscope.torch.wrapping import wrap_method

Record = dict[str, Any]


class Listener(Protocol):
    """Counts what happens in a step."""

    @property
    def records_step(self) -> bool:
        """Whether the step under way gets a record, for which a GPU is waited for."""

    def begin_step(self) -> None: ...

    def before_update(self, place: int, has_closure: bool) -> None:
        """An optimizer is about to step; a closure makes its gradients only inside of the step."""

    def after_update(self, place: int, skipped: bool) -> None:
        """skipped: the optimizer found an infinite gradient itself, and left its weights."""

    def end_step(self, stepped: bool, record: Record | None) -> None:
        """stepped: whether an optimizer stepped; record: where `records_step`."""

    def abandon_step(self) -> None:
        """The step under way ended in an error: what it counted in part is dropped, and `begin_step` follows."""


@dataclass
class Tally:
    """Steps so far; a training that is left and entered again has one."""

    steps: int = 0
    skipped: int = 0
    optimizer_steps: int = 0
    scaler: ScalerSteps = field(default_factory=ScalerSteps)


class TrainingSteps:
    """Follows the optimizers and the scaler of a training between `start` and `close`.

    A step ends with the scaler's `update()`, or without a scaler with the step of the last optimizer.
    """

    def __init__(self, trainee: Trainee, tally: Tally, records: Records, listener: Listener) -> None:
        self._trainee, self._tally, self._records, self._listener = trainee, tally, records, listener
        self._undo: list[Callable[[], None]] = []
        self._passes: list[bool] = []  # whether each forward pass of the model under way has returned
        self._died = False  # the latest one ended in an error
        self._clear()

    def _clear(self) -> None:
        self._stepped = self._forward_begun = self._skips = False
        self._loss: float | None = None
        self._scale: float | None = None

    def start(self) -> None:
        """Sets the hooks, and begins a step."""
        trainee = self._trainee
        for place, optimizer in enumerate(trainee.optimizers):
            before = lambda closure, place=place: self._before_update(place, closure)  # noqa: E731
            after = lambda place=place: self._after_update(place)  # noqa: E731
            self._undo.append(StepHooks(optimizer, before, after).remove)
        if trainee.scaler is not None:
            turns = self._tally.scaler.optimizers
            self._undo.append(wrap_method(trainee.scaler, "update", self._update_scale))
            self._undo.append(turns.follow(trainee.scaler, trainee.optimizers, trainee.model))
        self._begin()

    def follow_model(self) -> None:
        """Sees the model's forward passes: one behind another that ended in an error begins the step anew."""
        model = self._trainee.model
        self._undo.append(model.register_forward_pre_hook(WeakHook(self._before_forward)).remove)
        self._undo.append(model.register_forward_hook(WeakHook(self._returned)).remove)
        self._undo.append(model.register_forward_hook(WeakHook(self._after_forward), always_call=True).remove)

    def close(self) -> None:
        """Takes the hooks away."""
        for undo in reversed(self._undo):
            undo()
        self._undo = []

    def log(self, loss: float) -> None:
        """The loss of the step under way, or after its end, before the next forward pass, of the one just ended."""
        if not self._forward_begun and self._records.lacks_loss():
            self._records.log_late(loss)
        else:
            self._loss = loss

    def scale(self) -> float:
        """Loss scale of the step under way."""
        if self._scale is None:
            self._scale = self._trainee.scale()
        return self._scale

    @property
    def stepped(self) -> bool:
        """Whether an optimizer has stepped since the step began."""
        return self._stepped

    def abandon_step(self) -> None:
        """Begins the step under way anew."""
        self._listener.abandon_step()
        self._begin()

    def _begin(self) -> None:
        self._died = False
        self._clear()
        self._listener.begin_step()

    def _before_forward(self, *_: object) -> None:
        if _is_unseen():
            return
        trains = torch.is_grad_enabled()
        if trains and self._died and not self._passes and self._trainee.optimizers:
            self.abandon_step()
        self._forward_begun = self._forward_begun or trains
        self._passes.append(False)

    def _returned(self, *_: object) -> None:
        if not _is_unseen() and self._passes:
            self._passes[-1] = True

    def _after_forward(self, *_: object) -> None:
        """After a forward pass, and after one that ended in an error."""
        if not _is_unseen() and self._passes:
            self._died = not self._passes.pop()

    def _before_update(self, place: int, has_closure: bool) -> None:
        self._skips = self._listener.records_step and will_skip(self._trainee.optimizers[place])
        self._listener.before_update(place, has_closure)

    def _after_update(self, place: int) -> None:
        self._tally.optimizer_steps += 1
        if not self._skips:
            self._stepped = True
            self._tally.scaler.optimizers.stepped.add(place)
        self._listener.after_update(place, self._skips)
        if self._trainee.scaler is None and place == len(self._trainee.optimizers) - 1:
            self._end_step(1.0)

    def _update_scale(self, update: Callable, *arguments: Any, **options: Any) -> Any:
        """The scaler's update, which ends the step: it was skipped where no optimizer stepped."""
        if not self._undo:
            return update(*arguments, **options)
        asks = self._listener.records_step or not self._stepped  # which waits for a GPU
        scale = self.scale() if asks else 1.0
        result = update(*arguments, **options)
        self._tally.scaler.end(self._stepped, scale, self._trainee.rate())
        self._end_step(scale)
        return result

    def _end_step(self, scale: float) -> None:
        tally, stepped = self._tally, self._stepped
        tally.steps += 1
        tally.skipped += not stepped
        record: Record | None = None
        if self._listener.records_step:
            record = {
                "step": tally.steps, "loss": self._loss, "metric": None, "scale": scale, "skipped": not stepped,
                "learning_rate": self._trainee.rate(),
            }  # fmt: skip
        self._listener.end_step(stepped, record)
        self._begin()


def _is_unseen() -> bool:
    """Whether a forward pass is traced, or computed again inside of a backward pass."""
    return is_compiling() or is_in_backward_pass()
