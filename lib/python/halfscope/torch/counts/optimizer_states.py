"""State of an optimizer, such as Adam's m and v, after a step."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.counts.counter import StepCounts
from halfscope.torch.counts.histograms import OPTIMIZER_STATE


class OptimizerStates:
    """The tensors that an optimizer keeps per parameter, as far as they have the parameter's shape.

    These are Adam's exp_avg and exp_avg_sq, SGD's momentum_buffer and their like, whichever of PyTorch's
    implementations steps (one by one, foreach, fused). Counters of steps and sums over axes are left out.
    """

    def __init__(self, optimizer: Any, parameters: dict[str, torch.nn.Parameter]) -> None:
        self._optimizer, self._parameters = optimizer, parameters

    def count(self, seen: StepCounts) -> None:
        """Each tensor under the parameter's name and its own: "fc.weight.exp_avg"."""
        seen.count_all(OPTIMIZER_STATE, self._tensors(), 1.0)

    def _tensors(self) -> dict[str, torch.Tensor]:
        """Looked up anew: a state is made in the first step, and load_state_dict replaces it."""
        states = getattr(self._optimizer, "state", {})
        return {
            f"{name}.{key}": value
            for name, parameter in self._parameters.items()
            for key, value in states.get(parameter, {}).items()
            if _is_state_of(parameter, key, value)
        }


def _is_state_of(parameter: torch.nn.Parameter, key: str, value: object) -> bool:
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.shape != parameter.shape:
        return False
    return key != "step"  # has the shape of a parameter without axes
