"""Optimizers that one loss scaler steps: which of them made it skip, and which had no gradients, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope.torch.private import sparse_values
from halfscope.torch.words import listed
from halfscope.torch.wrapping import wrap_method


@dataclass
class OptimizerTurns:
    """Counts of a training with several optimizers and one scaler, which is told of every update of the scale."""

    optimizers: list[Any] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)  # names of the model's parameters, by identity
    asked: set[int] = field(default_factory=set)  # places of optimizers that the scaler was to step, since its update
    stepped: set[int] = field(default_factory=set)  # places of those that stepped
    skipped: Counter[int] = field(default_factory=Counter)  # by place: updates at which its gradients were not finite
    alone: Counter[int] = field(default_factory=Counter)  # the same, at which another optimizer stepped
    refused: Counter[int] = field(default_factory=Counter)  # by place: steps without a gradient
    tensors: dict[int, Counter[str]] = field(default_factory=dict)  # by place: parameters whose gradients these were

    def follow(self, scaler: Any, optimizers: list[Any], model: torch.nn.Module) -> Callable[[], None]:
        """Looks at the steps that a scaler makes for several optimizers; returns what ends that."""
        self.optimizers = optimizers
        self.names = {id(parameter): name for name, parameter in model.named_parameters()}
        if len(optimizers) < 2 or not hasattr(scaler, "step"):
            return lambda: None
        return wrap_method(scaler, "step", self._step)

    def _step(self, step: Callable, optimizer: Any, *arguments: Any, **options: Any) -> Any:
        places = [place for place, own in enumerate(self.optimizers) if own is optimizer]
        self.asked.update(places)
        try:
            return step(optimizer, *arguments, **options)
        except AssertionError:
            self.refused.update(place for place in places if not self._gradients(place))
            raise

    def end(self) -> None:
        """The scale is updated: the gradients of optimizers that were to step and did not are looked at."""
        for place in sorted(self.asked - self.stepped):
            self._look_at(place)
        self.asked, self.stepped = set(), set()

    def _look_at(self, place: int) -> None:
        gradients = self._gradients(place)
        bad = [name for name, gradient in gradients if not bool(torch.isfinite(_numbers(gradient)).all())]
        if bad:
            self.skipped[place] += 1
            self.alone[place] += bool(self.stepped)
            self.tensors.setdefault(place, Counter()).update(bad)

    def _gradients(self, place: int) -> list[tuple[str, torch.Tensor]]:
        return [
            (self.names.get(id(parameter), "a parameter outside of the model"), parameter.grad)
            for group in self.optimizers[place].param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]

    def words(self) -> list[str]:
        return [*map(self._overflow, self.skipped), *map(self._refusal, self.refused)]

    def _overflow(self, place: int) -> str:
        found = self.tensors[place]
        took = f", in {self.alone[place]} of them while another optimizer stepped" if self.alone[place] else ""
        return (
            f"{self._called(place)} had infinite or NaN gradients in {_steps(self.skipped[place])}{took}, and lowered "
            f"the scale for all: {listed(found)}. A GradScaler of its own keeps its overflows from the others."
        )

    def _refusal(self, place: int) -> str:
        owned = [parameter for group in self.optimizers[place].param_groups for parameter in group["params"]]
        names = listed([self.names.get(id(parameter), "a parameter outside of the model") for parameter in owned])
        return (
            f"The scaler refused to step o{self._called(place)[1:]} in {_steps(self.refused[place])}: none of its "
            f"parameters ({names}) had a gradient. Call scaler.step only for optimizers that took part in the "
            "iteration, and scaler.update() once, behind them all."
        )

    def _called(self, place: int) -> str:
        return f"Optimizer {place + 1} of {len(self.optimizers)} ({type(self.optimizers[place]).__name__})"


def _numbers(gradient: torch.Tensor) -> torch.Tensor:
    local = gradient.to_local() if hasattr(gradient, "to_local") else gradient
    return sparse_values(local) if local.is_sparse else local


def _steps(count: int) -> str:
    return f"{count} step{'s' * (count != 1)}"
