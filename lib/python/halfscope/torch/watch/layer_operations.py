"""Layers of one known operation: they run outside of a dispatch mode, which costs more than a small layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from halfscope.torch.private import is_in_transform, parameters_in, without_dispatch_modes
from halfscope.torch.tensors.elements import ORDINARY
from halfscope.torch.tensors.trees import tensors
from halfscope.torch.weak_hooks import WeakHook

Take = Callable[[nn.Module, torch.Tensor, torch.Tensor], None]  # layer, its input, its output

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_EXACT = (nn.ReLU, nn.Identity, nn.Dropout, nn.Flatten, nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)
_KNOWN = {nn.Linear, *_CONVOLUTIONS, *_EXACT}


class LayerOperations:
    """Takes layers out of the mode while it is entered."""

    def __init__(self, take: Take, may_leave: Callable[[], bool]) -> None:
        """take: called with each layer and what it has run on; may_leave: whether the next one is taken out."""
        self._take, self._may_leave = take, may_leave
        self._pause: Any = None
        self._is_on = False

    @staticmethod
    def knows(module: nn.Module) -> bool:
        return type(module) in _KNOWN

    def hook(self, module: nn.Module) -> Any:
        """Hook for a watched step; `after` is to be called after each pass, one that fails too."""
        return module.register_forward_pre_hook(WeakHook(self._before))

    def begin(self) -> None:
        """The mode is entered."""
        self._is_on = True

    def end(self) -> None:
        self._is_on = False

    def _before(self, module: nn.Module, inputs: tuple) -> None:
        may_leave = self._is_on and self._pause is None and self._may_leave() and not is_in_transform()
        if may_leave and inputs and _are_plain(module, inputs):
            self._pause = without_dispatch_modes()

    def after(self, module: nn.Module, inputs: tuple, output: Any) -> None:
        if self._pause is None:
            return
        self._pause = None
        if inputs and type(inputs[0]) is torch.Tensor and type(output) is torch.Tensor:
            self._take(module, inputs[0], output)


def _are_plain(module: nn.Module, inputs: tuple) -> bool:
    """Whether a layer can do without dispatch: a DTensor, or another wrapper, has no memory of its own."""
    return all(type(each) in ORDINARY for each in (*tensors(inputs), *tensors(list(parameters_in(module).values()))))


def operation_of_layer(module: Any) -> str:
    """Name of the dispatcher; empty for a layer that selects or moves numbers."""
    kind = type(module)
    if kind is nn.Linear:
        return "mm" if parameters_in(module)["bias"] is None else "addmm"
    return "convolution" if kind in _CONVOLUTIONS else ""


def arguments_of_layer(operation: str, module: Any, given: torch.Tensor) -> tuple:
    """Arguments in the operation's order."""
    if operation == "addmm":
        return module.bias, given, module.weight
    if not operation:
        return (given,)
    return (given, module.weight) if operation == "mm" else (given, module.weight, module.bias)
