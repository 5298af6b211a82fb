"""The weights before and after an optimizer's step, in memory that is kept: a fresh copy costs more than counting it."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from halfscope.torch.tensors import on_host


class Weights:
    """The float32 copies of parameters that have a gradient; empty until the first `keep`."""

    def __init__(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        self._parameters = parameters
        self._copies: dict[str, torch.Tensor] = {}
        self._moved: list[str] = []
        self._difference = torch.empty(0)

    def keep(self) -> None:
        """Copies the weights as they are, before a step."""
        self._moved = [name for name, parameter in self._parameters.items() if parameter.grad is not None]
        for name in self._moved:
            weights = on_host(self._parameters[name])
            if name not in self._copies:
                self._copies[name] = torch.empty(weights.shape)
            self._copies[name].copy_(weights)

    def moved(self) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
        """Name, weights before and update of every parameter, after the step; valid until the next one is asked for."""
        for name in self._moved:
            before = self._copies[name]
            if self._difference.numel() < before.numel():
                self._difference = torch.empty(before.numel())
            update = self._difference[: before.numel()].view(before.shape)
            yield name, before, torch.sub(on_host(self._parameters[name]).float(), before, out=update)
