"""Model, optimizers and loss scaler of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.private import is_compiled
from halfscope.torch.steps.optimizers import optimizers_of


@dataclass(frozen=True)
class Trainee:
    """Model and optimizers in training."""

    model: torch.nn.Module
    optimizers: list[Any]
    scaler: Any = None

    def scale(self) -> float:
        """The loss scale of the next backward pass."""
        return 1.0 if self.scaler is None else float(self.scaler.get_scale())

    def rate(self) -> float:
        """The learning rate of the first group of weights."""
        return float(self.optimizers[0].param_groups[0]["lr"])


def refuse_float64(model: torch.nn.Module, door: str) -> None:
    """Raises TypeError for a weight of float64, which no format is computed for. door: the function that was called."""
    wide = next((name for name, weight in model.named_parameters() if weight.dtype is torch.float64), None)
    if wide is not None:
        raise TypeError(f"{door}: '{wide}' is float64, which is not rounded; give model.float(), and float32 inputs")


def check_module(model: torch.nn.Module, door: str) -> None:
    """Raises TypeError for what is no module of FP32 or fewer bits, or hides its operations. door: the function."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{door}: model={model!r}; give a module of PyTorch")
    refuse_float64(model, door)
    for name, module in model.named_modules():
        label = f"'{name}'" if name else "the model"
        if is_compiled(module):
            raise TypeError(f"{door}: {label} is compiled, which hides its operations; give the module itself")
        if isinstance(module, torch.nn.DataParallel):
            raise TypeError(f"{door}: {label} is DataParallel, whose threads are not followed; give its module")
        if isinstance(module, torch.jit.ScriptModule):
            raise TypeError(f"{door}: {label} is a script, which hides its operations; give the module itself")


def watched_trainee(model: torch.nn.Module, optimizer: Any, scaler: Any) -> Trainee:
    """Raises TypeError for an optimizer or a scaler that is none."""
    optimizers = optimizers_of(optimizer, "watch")
    if scaler is not None and not (hasattr(scaler, "get_scale") and hasattr(scaler, "update")):
        raise TypeError(f"watch: scaler={scaler!r}; give a GradScaler")
    return Trainee(model, optimizers, scaler)
