"""Search for layers that must stay in FP32, none of which can be left out, by trainings that all begin alike."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.emulation.training import Trainee

Accepts = Callable[[], Any]  # yes or no, or a number that is to be small
Train = Callable[[list[str], Accepts], Any]  # what it says of a training; None of one whose steps were all skipped
# Candidates for FP32 beside layers, by role; names of modules have no brackets.
ROLES = {"(stored weights)": "master_weight", "(optimizer state)": "optimizer_state"}


@dataclass(frozen=True)
class Snapshot:
    """Weights, optimizers, scaler and PyTorch's random numbers."""

    model: dict[str, Any]
    optimizers: list[dict[str, Any]]
    scaler: dict[str, Any] | None
    random: torch.Tensor
    modes: dict[str, bool]

    @classmethod
    def of(cls, trainee: Trainee) -> Snapshot:
        return cls(
            copy.deepcopy(trainee.model.state_dict()),
            [copy.deepcopy(optimizer.state_dict()) for optimizer in trainee.optimizers],
            None if trainee.scaler is None else copy.deepcopy(trainee.scaler.state_dict()),
            torch.get_rng_state(),
            {name: module.training for name, module in trainee.model.named_modules()},
        )

    def restore(self, trainee: Trainee) -> None:
        trainee.model.load_state_dict(self.model)
        for optimizer, state in zip(trainee.optimizers, self.optimizers):
            optimizer.load_state_dict(copy.deepcopy(state))
            optimizer.zero_grad(set_to_none=True)
        if trainee.scaler is not None:
            trainee.scaler.load_state_dict(copy.deepcopy(self.scaler))
        for name, module in trainee.model.named_modules():
            module.training = self.modes.get(name, module.training)
        torch.set_rng_state(self.random)


@dataclass(frozen=True)
class Bisection:
    """Result of `bisect`."""

    layers: tuple[str, ...]  # that must stay in FP32; none where the formats alone will do
    runs: int  # trainings

    @property
    def rules(self) -> dict[str, Any]:
        """For `emulate(rules=...)`."""
        roles = {ROLES[name]: "fp32" for name in self.layers if name in ROLES}
        layers = {name: "fp32" for name in self.layers if name not in ROLES}
        return {**layers, "*": roles} if roles else layers

    def __str__(self) -> str:
        runs = f"({self.runs} run{'s' * (self.runs != 1)})"
        if not self.layers:
            return f"No layer needs FP32 {runs}."
        layers = [name for name in self.layers if name]
        count = f"{len(layers)} layer{'s' * (len(layers) != 1)} in FP32: {', '.join(layers)}"
        if all(name in ROLES for name in layers):
            count = f"{', '.join(name.strip('()') for name in layers)} in FP32"
        if "" not in self.layers:
            return f"Keep {count} {runs}."
        return f"Keep the model's own operations{', and ' + count if layers else ' in FP32'} {runs}."


def bisect(accepts: Accepts, layers: list[str], train: Train, within: float = 0.01) -> Bisection:
    """layers: in the order of the model; train: tells of a training with some of them in FP32.

    within: of a number, how far above that of all layers in FP32 it may be, relative to that.
    """
    search = _Search(accepts, train, layers, within)
    if search.will_do([]):
        return Bisection((), search.runs)
    if search.told(layers) is None:
        raise ValueError(
            f"bisect: with all {len(layers)} layers in FP32 the scaler skipped every step too; train more steps, or "
            "begin with a smaller scale"
        )
    if not search.will_do(layers):
        raise ValueError(
            f"bisect: with all {len(layers)} layers in FP32 the result is refused too ({_some(layers)}); it is not "
            "their formats"
        )
    found: list[str] = []
    candidates = list(layers)
    while True:
        candidates = candidates[: search.shortest_prefix(candidates, found)]
        found.append(candidates.pop())
        if not candidates or search.will_do(found):
            break
    found = _without_needless(found, search)
    return Bisection(tuple(sorted(found, key=layers.index)), search.runs)


def _without_needless(found: list[str], search: _Search) -> list[str]:
    """Drops layers one by one until none of the rest can be left out."""
    while True:
        for name in found:
            without = [other for other in found if other != name]
            if without and search.will_do(without):
                found = without
                break
        else:
            return found


def _some(layers: list[str]) -> str:
    shown = [name or "the model's own operations" for name in layers]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")


class _Search:
    def __init__(self, accepts: Accepts, train: Train, layers: list[str], within: float) -> None:
        self._accepts, self._train, self._layers, self._within = accepts, train, layers, within
        self._known: dict[frozenset[str], Any] = {}

    @property
    def runs(self) -> int:
        return len(self._known)

    def told(self, layers: list[str]) -> Any:
        """Yes, no, a number, or None of a training whose steps were all skipped."""
        key = frozenset(layers)
        if key not in self._known:
            self._known[key] = self._train(layers, self._accepts)
        return self._known[key]

    def will_do(self, layers: list[str]) -> bool:
        """Whether the training is accepted with these in FP32; a number that is NaN is not."""
        told = self.told(layers)
        if told is None or isinstance(told, bool):
            return bool(told)
        best = self.told(self._layers)
        if best is None or isinstance(best, bool):
            return bool(best)
        return bool(told <= best + self._within * abs(best))

    def shortest_prefix(self, candidates: list[str], found: list[str]) -> int:
        """How many of the first candidates it takes beside `found`; all of them will do."""
        low, high = 0, len(candidates)
        while high - low > 1:
            middle = (low + high) // 2
            if self.will_do([*found, *candidates[:middle]]):
                high = middle
            else:
                low = middle
        return high
