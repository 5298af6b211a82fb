"""The weights before and after an optimizer's step, in memory that is kept: a fresh copy costs more than counting."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from halfscope.torch.counting import where_counted


class Weights:
    """Copies of the parameters that have a gradient, where these are counted; none until the first `keep`.

    float32, and float64 of float64.
    """

    def __init__(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        self._parameters = parameters
        self._copies: dict[str, torch.Tensor] = {}
        self._moved: list[str] = []
        self._differences: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}

    def keep(self) -> None:
        """Copies the weights as they are, before a step."""
        self._moved = [name for name, parameter in self._parameters.items() if parameter.grad is not None]
        for name in self._moved:
            weights = where_counted(self._parameters[name])
            known = self._copies.get(name)
            if known is None or known.device != weights.device:
                self._copies[name] = torch.empty(weights.shape, dtype=_at_least_float32(weights), device=weights.device)
            self._copies[name].copy_(weights)

    def moved(self) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
        """Name, weights before and update of every parameter, after the step; valid until the next one is asked for."""
        for name in self._moved:
            before = self._copies[name]
            update = self._difference(before)
            yield name, before, torch.sub(where_counted(self._parameters[name]).to(before.dtype), before, out=update)

    def _difference(self, like: torch.Tensor) -> torch.Tensor:
        kind = (like.dtype, like.device)
        known = self._differences.get(kind)
        if known is None or known.numel() < like.numel():
            known = self._differences[kind] = torch.empty(like.numel(), dtype=like.dtype, device=like.device)
        return known[: like.numel()].view(like.shape)


def _at_least_float32(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.dtype is torch.float64 else torch.float32
