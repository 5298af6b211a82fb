"""Hooks on a model's layers, and which of the layers they never saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from halfscope.torch.private import is_compiled
from halfscope.torch.tensors.elements import Choice, floating
from halfscope.torch.watch.layer_operations import LayerOperations
from halfscope.torch.weak_hooks import WeakHook


class Layers:
    """The layers of a model that a choice has, those that are added later too."""

    def __init__(self, model: torch.nn.Module, choice: Choice, take: Callable) -> None:
        """take: called with the name of a layer and a tensor that it returned."""
        self._model, self._choice, self._take = model, choice, take
        self._operations: LayerOperations | None = None  # for a watch that looks at operations
        self._hooks: dict[torch.nn.Module, list[RemovableHandle]] = {}
        self._called: set[torch.nn.Module] = set()

    def look_at(self, operations: LayerOperations) -> None:
        """Takes layers out of the mode from now on."""
        self._operations = operations

    def named(self) -> dict[str, torch.nn.Module]:
        """Modules by name, as the model is now."""
        return {name: module for name, module in self._model.named_modules() if self._choice.has_layer(name, module)}

    def unseen(self) -> list[str]:
        """Layers that were not called in a watched step."""
        return [name for name, module in self.named().items() if module not in self._called]

    def compiled(self) -> bool:
        """Whether torch.compile has to do with the model: what it compiled before calls no hook added later."""
        return any(map(is_compiled, self._model.modules()))

    def hook(self) -> None:
        """Hooks for a watched step; a hook costs a layer its short way to `forward`: no other step has one."""
        for name, module in self.named().items():
            if module not in self._hooks:
                self._hooks[module] = self._hooks_of(name, module)

    def _hooks_of(self, name: str, module: torch.nn.Module) -> list[RemovableHandle]:
        after = WeakHook(self._after_forward, name)
        if self._operations is None or not name or not self._operations.knows(module):
            return [module.register_forward_hook(after)]
        return [self._operations.hook(module), module.register_forward_hook(after, always_call=True)]

    def unhook(self) -> None:
        for hooks in self._hooks.values():
            for hook in hooks:
                hook.remove()
        self._hooks = {}

    def _after_forward(self, name: str, module: torch.nn.Module, inputs: tuple, output: Any) -> None:
        if self._operations is not None:
            self._operations.after(module, inputs, output)
        if not torch.is_grad_enabled():
            return
        self._called.add(module)
        for tensor in (output,) if type(output) is torch.Tensor and output.is_floating_point() else floating(output):
            self._take(name, tensor)
