"""The weights before and after an optimizer's step, in memory that is kept: a fresh copy costs more than counting."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from halfscope.torch.tensors import on_host


class Weights:
    """Copies of the parameters that have a gradient, float32, of float64 float64; none until the first `keep`."""

    def __init__(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        self._parameters = parameters
        self._copies: dict[str, torch.Tensor] = {}
        self._moved: list[str] = []
        self._differences: dict[torch.dtype, torch.Tensor] = {}

    def keep(self) -> None:
        """Copies the weights as they are, before a step."""
        self._moved = [name for name, parameter in self._parameters.items() if parameter.grad is not None]
        for name in self._moved:
            weights = on_host(self._parameters[name])
            if name not in self._copies:
                self._copies[name] = torch.empty(weights.shape, dtype=_at_least_float32(weights))
            self._copies[name].copy_(weights)

    def moved(self) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
        """Name, weights before and update of every parameter, after the step; valid until the next one is asked for."""
        for name in self._moved:
            before = self._copies[name]
            update = self._difference(before)
            yield name, before, torch.sub(on_host(self._parameters[name]).to(before.dtype), before, out=update)

    def _difference(self, like: torch.Tensor) -> torch.Tensor:
        known = self._differences.get(like.dtype)
        if known is None or known.numel() < like.numel():
            known = self._differences[like.dtype] = torch.empty(like.numel(), dtype=like.dtype)
        return known[: like.numel()].view(like.shape)


def _at_least_float32(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.dtype is torch.float64 else torch.float32
