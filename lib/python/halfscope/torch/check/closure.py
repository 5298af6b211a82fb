"""The function that computes a loss or makes a step, called each time from the same state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope.torch.check.kept_objects import Keeper, keepers_of
from halfscope.torch.check.reachable_objects import reachable_objects
from halfscope.torch.doctor.outcomes import loss_in
from halfscope.torch.private import without_function_modes, without_modes
from halfscope.torch.wrapping import wrap_method


@dataclass
class Closure:
    """prepare: called before each step, behind the state that is brought back.

    detaches: the loss, of a step that has made its backward pass and thrown the gradients away.
    """

    loss: Callable[[], Any]
    model: torch.nn.Module
    prepare: Callable[[], Any] = lambda: None
    detaches: bool = False
    keepers: list[Keeper] = field(init=False)
    scalers: list[Any] = field(init=False)  # that the function can reach
    optimizers: list[torch.optim.Optimizer] = field(init=False)  # that have weights of the model

    def __post_init__(self) -> None:
        objects = reachable_objects(self.loss)
        self.keepers = keepers_of(objects, self.model)
        self.scalers = [each for each in objects if _is_scaler(each)]
        weights = {id(weight) for weight in self.model.parameters()}
        optimizers = [each for each in objects if isinstance(each, torch.optim.Optimizer)]
        self.optimizers = [
            each for each in optimizers
            if any(id(weight) in weights for group in each.param_groups for weight in group["params"])
        ]  # fmt: skip

    def __call__(self) -> Any:
        with without_function_modes(), without_modes():
            self.restore()
            self.prepare()
        result = self.loss()
        if not self.detaches:
            return result
        with without_function_modes(), without_modes():
            loss = loss_in(result)
            return None if loss is None else loss.detach()

    def restore(self) -> None:
        """Brings back what the function can reach outside of the model."""
        for keep in self.keepers:
            keep()

    def noting_scaler(self, used: list[Any]) -> Callable[[], None]:
        """Hook to call before a step: puts the scalers whose `scale` the step calls into a list."""

        def prepare() -> None:
            for scaler in self.scalers:
                wrap_method(scaler, "scale", _noting(scaler, used))

        return prepare


def _noting(scaler: Any, used: list[Any]) -> Callable:
    def around(scale: Callable, *arguments: Any, **options: Any) -> Any:
        if scaler not in used:
            used.append(scaler)
        return scale(*arguments, **options)

    return around


def _is_scaler(each: Any) -> bool:
    names = ("scale", "step", "update", "get_scale")
    return not isinstance(each, torch.nn.Module) and all(callable(getattr(type(each), name, None)) for name in names)
