"""Choice of products that a training leaves out of a policy's formats, and the error for each number of layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from halfscope.subset_search import smallest
from halfscope.torch.gradient_errors.error_sums import GradientError
from halfscope.torch.gradient_errors.policy_products import layer_of
from halfscope.torch.gradient_errors.step_gradients import StepErrors

SEEN = 0.02  # error over noise, below which trainings of a hundred steps told no format from FP32
OPTIMIZERS = {"adam": "beside_factor", "sgd": "whole"}  # the error that an optimizer sees


@dataclass(frozen=True)
class Judge:
    """The error that counts under an optimizer, and from which on a training is taken to see it."""

    optimizer: str
    limit: float

    def seen(self, error: GradientError) -> float:
        return float(getattr(error, OPTIMIZERS[self.optimizer]))

    def interval(self, error: GradientError) -> tuple[float, float]:
        return error.whole_interval if self.optimizer == "sgd" else error.beside_interval


@dataclass(frozen=True)
class LeftLayers:
    """Error of a step that leaves the first layers of a ranking out of the formats."""

    layers: tuple[str, ...]
    error: GradientError


def alone(errors: StepErrors, names: list[str]) -> dict[str, GradientError]:
    """The error of each product alone."""
    return dict(zip(names, errors.leaving([[other for other in names if other != name] for name in names])))


def fewest(errors: StepErrors, ranked: list[str], judge: Judge) -> list[str]:
    """The fewest of the first products of a ranking that leave an error within the limit; all leave none."""

    def is_enough(count: int) -> bool:
        return judge.seen(errors.leaving([ranked[:count]])[0]) <= judge.limit

    return ranked[: smallest(1, len(ranked), is_enough)]


def by_number_of_layers(errors: StepErrors, units: Mapping[str, GradientError], judge: Judge) -> tuple[LeftLayers, ...]:
    """Errors that 0, 1, 2, 4, ... and all layers leave, the layer with the largest error left out first."""
    sums: dict[str, float] = {}
    for name, error in units.items():
        sums[layer_of(name)] = sums.get(layer_of(name), 0.0) + judge.seen(error)
    ranked = sorted(sums, key=lambda layer: -sums[layer])
    counts = sorted({0, len(ranked), *(2**power for power in range(len(ranked).bit_length()))})
    choices = [tuple(ranked[:count]) for count in counts]
    found = errors.leaving([[name for name in units if layer_of(name) in layers] for layers in choices])
    return tuple(LeftLayers(layers, error) for layers, error in zip(choices, found))
