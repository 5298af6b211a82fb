"""Search for layers that must stay in FP32, none of which can be left out, by trainings that all begin alike."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.emulation.training import Trainee

Train = Callable[[list[str], Callable[[], bool]], bool]
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


def bisect(accepts: Callable[[], bool], layers: list[str], train: Train) -> Bisection:
    """layers: in the order of the model; train: says whether a training with some of them in FP32 is accepted."""
    search = _Search(accepts, train)
    if search.will_do([]):
        return Bisection((), search.runs)
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
    for name in list(found):
        without = [other for other in found if other != name]
        if without and search.will_do(without):
            found = without
    return Bisection(tuple(sorted(found, key=layers.index)), search.runs)


def _some(layers: list[str]) -> str:
    shown = [name or "the model's own operations" for name in layers]
    return ", ".join(shown[:6]) + (f" and {len(shown) - 6} more" if len(shown) > 6 else "")


class _Search:
    def __init__(self, accepts: Callable[[], bool], train: Train) -> None:
        self._accepts, self._train = accepts, train
        self._known: dict[frozenset[str], bool] = {}

    @property
    def runs(self) -> int:
        return len(self._known)

    def will_do(self, layers: list[str]) -> bool:
        """Whether the training is accepted with these in FP32."""
        key = frozenset(layers)
        if key not in self._known:
            self._known[key] = self._train(layers, self._accepts)
        return self._known[key]

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
