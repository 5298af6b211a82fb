"""Ends of training steps: hooks around an optimizer's step, and who calls it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

import torch

from halfscope.torch.private import caller, has_own_step_hooks
from halfscope.torch.wrapping import wrap_method


def optimizers_of(given: Any, door: str) -> list[Any]:
    """One optimizer or several, without the wrappers of accelerate and Lightning. door: the function that was called.

    Raises TypeError for what has no `step` and no `param_groups`.
    """
    several = list(given) if isinstance(given, Iterable) and not hasattr(given, "step") else [given]
    found = [_innermost(optimizer) for optimizer in several]
    for optimizer in found:
        if not hasattr(optimizer, "step") or not hasattr(optimizer, "param_groups"):
            raise TypeError(f"{door}: optimizer={optimizer!r}; give an optimizer of PyTorch, or a list of them")
    return found


def _innermost(optimizer: Any) -> Any:
    """The optimizer that a wrapper holds: a wrapper steps during accumulation too, the optimizer inside does not."""
    while isinstance(getattr(optimizer, "optimizer", None), torch.optim.Optimizer):
        optimizer = optimizer.optimizer
    return optimizer


def parameters_of(optimizer: Any) -> set[int]:
    """The `id` of each."""
    return {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}


class StepHooks:
    """Calls before(closure given) and after() around every step of an optimizer, until `remove`.

    By PyTorch's own hooks (2.0 and later), else in place of the method `step`.
    """

    def __init__(self, optimizer: Any, before: Callable[[bool], None], after: Callable[[], None]) -> None:
        self._before, self._after = before, after
        self._outermost: FrameType | None = None  # frame of the step under way: a step may call its base class's
        if has_own_step_hooks(optimizer):
            handles = [
                optimizer.register_step_pre_hook(self._before_step),
                optimizer.register_step_post_hook(self._after_step),
            ]
            self._undo = [handle.remove for handle in handles]
        else:
            self._undo = [wrap_method(optimizer, "step", self._around_step)]

    def remove(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = []

    def _before_step(self, _: Any, arguments: tuple, options: dict) -> None:
        frame = caller(1)
        if self._outermost is not None and self._outermost in _callers(frame):
            return
        self._outermost = frame
        self._before(_has_closure(arguments, options))

    def _after_step(self, *_: Any) -> None:
        if self._outermost is caller(1):
            self._outermost = None
            self._after()

    def _around_step(self, step: Callable, *arguments: Any, **options: Any) -> Any:
        if not self._undo:  # removed, but a scheduler has wrapped the wrapper
            return step(*arguments, **options)
        self._before(_has_closure(arguments, options))
        result = step(*arguments, **options)
        self._after()
        return result


def _has_closure(arguments: tuple, options: dict) -> bool:
    return any(callable(value) for value in (*arguments, *options.values()))


def _callers(frame: FrameType | None) -> Iterable[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def stepping_scaler() -> Any:
    """The GradScaler in whose `step` this is called, where it scales; else None."""
    for place, frame in enumerate(_callers(caller(1))):
        if place > 20:
            break
        if frame.f_code.co_name in ("step", "_maybe_opt_step"):
            owner: Any = frame.f_locals.get("self")
            if all(hasattr(owner, name) for name in ("get_scale", "update", "step")) and owner.get_scale() != 1:
                return owner
    return None
