"""The weights before and after an optimizer's step, in memory that is kept: a fresh copy costs more than counting."""

from __future__ import annotations

import torch

from halfscope._core import KeptWeights
from halfscope.torch.counting import is_plain, region, where_counted
from halfscope.torch.observations import Observations
from halfscope.torch.tensors import on_host


class Weights:
    """Copies of the parameters that have a gradient, where these are counted; none until the first `keep`.

    float32, and float64 of float64.
    """

    def __init__(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        self._parameters = parameters
        self._plain: list[str] = []  # of the latest step
        self._others: list[str] = []
        self._kept = KeptWeights()
        self._copies: dict[str, torch.Tensor] = {}
        self._differences: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}

    def keep(self) -> None:
        """Copies the weights as they are, before a step."""
        moving = {name: parameter for name, parameter in self._parameters.items() if parameter.grad is not None}
        self._plain = [name for name, parameter in moving.items() if is_plain(parameter)]
        self._others = [name for name, parameter in moving.items() if not is_plain(parameter)]
        self._kept.keep([region(moving[name]) for name in self._plain])
        for name in self._others:
            weights = where_counted(moving[name])
            known = self._copies.get(name)
            if known is None or known.device != weights.device:
                known = self._copies[name] = torch.empty(
                    weights.shape, dtype=_at_least_float32(weights), device=weights.device
                )
            known.copy_(weights)

    def count_updates(self, seen: Observations) -> None:
        """Counts what the step did to the weights that were kept before it."""
        now = [_as_plain(self._parameters[name]) for name in self._plain]
        for name, moved in zip(self._plain, self._kept.moved(list(map(region, now)))):
            seen.updates[name] = moved.counters
            seen.add("update_ratio", name, moved.ratios)
        for name in self._others:
            before = self._copies[name]
            now = where_counted(self._parameters[name]).to(before.dtype)
            seen.count_update(name, before, torch.sub(now, before, out=self._difference(before)))

    def _difference(self, like: torch.Tensor) -> torch.Tensor:
        kind = (like.dtype, like.device)
        known = self._differences.get(kind)
        if known is None or known.numel() < like.numel():
            known = self._differences[kind] = torch.empty(like.numel(), dtype=like.dtype, device=like.device)
        return known[: like.numel()].view(like.shape)


def _as_plain(weights: torch.Tensor) -> torch.Tensor:
    """Such as they were before a step that replaced them."""
    return weights if is_plain(weights) else on_host(weights).float().contiguous()


def _at_least_float32(tensor: torch.Tensor) -> torch.dtype:
    return torch.float64 if tensor.dtype is torch.float64 else torch.float32
