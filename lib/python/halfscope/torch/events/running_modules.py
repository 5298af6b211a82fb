"""Modules whose forward pass is under way, the innermost last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class RunningModules:
    """A stack of modules by hooks, which hang on the model as long as it is followed."""

    def __init__(self, model: torch.nn.Module) -> None:
        self._names = {module: name for name, module in model.named_modules()}
        self._running: list[torch.nn.Module] = []

    def __bool__(self) -> bool:
        return bool(self._running)

    @property
    def innermost(self) -> torch.nn.Module:
        return self._running[-1]

    @property
    def name(self) -> str:
        """Name of the innermost one."""
        return self._names[self._running[-1]]

    @contextmanager
    def followed(self) -> Iterator[None]:
        """The forward pass of a model."""
        hooks = [hook for module in self._names for hook in self._follow(module)]
        try:
            yield
        finally:
            self._running.clear()
            for hook in hooks:
                hook.remove()

    def _follow(self, module: torch.nn.Module) -> tuple[Any, Any]:
        return (
            module.register_forward_pre_hook(lambda *_: self._running.append(module)),
            module.register_forward_hook(lambda *_: self._leave(), always_call=True),
        )

    def _leave(self) -> None:
        """Nothing is returned, which would take the place of the module's output."""
        if self._running:
            self._running.pop()
