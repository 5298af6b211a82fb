"""The weights before and after an optimizer's step, in memory that is kept: a fresh copy costs more than counting."""

from __future__ import annotations

import torch

from halfscope._core import KeptWeights
from halfscope.torch.counting import is_plain, region, where_counted
from halfscope.torch.observations import Observations
from halfscope.torch.tensors import Unreadable, elements_of, format_of

_NARROW = (torch.float16, torch.bfloat16)


class Weights:
    """Copies of an optimizer's parameters that have a gradient, where these are counted; none until the first `keep`.

    float32, and float64 of float64; those of 16 bits in their own format.
    """

    def __init__(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        self.parameters = parameters
        self.release()

    def release(self) -> None:
        """Gives the memory of the copies back."""
        self._plain: dict[str, tuple] = {}  # of the latest step: shape and strides by name
        self._others: list[str] = []
        self._narrow: list[str] = []
        self._kept = KeptWeights()
        self._copies: dict[str, torch.Tensor] = {}
        self._differences: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}

    def keep(self, also_without_gradient: bool) -> None:
        """Copies the weights as they are, before a step; a closure will make gradients only inside of it."""
        moving = {
            name: elements
            for name, parameter in self.parameters.items()
            if also_without_gradient or parameter.grad is not None
            for elements in _readable(parameter)
        }
        self._narrow = [name for name, weights in moving.items() if weights.dtype in _NARROW]
        plain = {
            name: weights for name, weights in moving.items() if weights.dtype is torch.float32 and is_plain(weights)
        }
        self._others = [name for name in moving if name not in plain and name not in self._narrow]
        self._plain = {name: (weights.shape, weights.stride()) for name, weights in plain.items()}
        self._kept.keep(list(map(region, plain.values())))
        for name in self._narrow:
            self._copy(name, moving[name], moving[name].dtype)
        for name in self._others:
            weights = where_counted(moving[name])
            self._copy(name, weights, torch.float64 if weights.dtype is torch.float64 else torch.float32)

    def _copy(self, name: str, weights: torch.Tensor, dtype: torch.dtype) -> None:
        known = self._copies.get(name)
        if known is None or known.device != weights.device or known.dtype is not dtype or known.shape != weights.shape:
            known = self._copies[name] = torch.empty(weights.shape, dtype=dtype, device=weights.device)
        known.copy_(weights)

    def count_updates(self, seen: Observations) -> None:
        """Counts what the step did to the weights that were kept before it."""
        now = [_laid_out(elements_of(self.parameters[name]), *layout) for name, layout in self._plain.items()]
        for name, moved in zip(self._plain, self._kept.moved(list(map(region, now)), seen.format)):
            seen.updates[name] = moved.counters
            seen.add("update_ratio", name, moved.ratios)
        for name in self._others:
            before = self._copies[name]
            after = where_counted(self.parameters[name]).to(before.dtype)
            seen.count_update(name, before, torch.sub(after, before, out=self._difference(before)))
        for name in self._narrow:
            self._count_narrow(name, seen)

    def _count_narrow(self, name: str, seen: Observations) -> None:
        """What 16 bits lost is gone from the difference: it is counted which weights with a gradient stayed."""
        parameter, before = self.parameters[name], self._copies[name]
        after = elements_of(parameter)
        if parameter.grad is not None:
            for gradient in _readable(parameter.grad):
                seen.count_stalled(name, format_of(parameter), after == before, _strided(gradient))
        before = where_counted(before).float()
        seen.count_ratio(name, before, where_counted(after).float() - before)

    def _difference(self, like: torch.Tensor) -> torch.Tensor:
        kind = (like.dtype, like.device)
        known = self._differences.get(kind)
        if known is None or known.numel() < like.numel():
            known = self._differences[kind] = torch.empty(like.numel(), dtype=like.dtype, device=like.device)
        return known[: like.numel()].view(like.shape)


def _readable(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The elements, or nothing: what cannot be read is named where its gradient is counted."""
    try:
        return [elements_of(tensor)]
    except Unreadable:
        return []


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def _laid_out(weights: torch.Tensor, shape: torch.Size, strides: tuple[int, ...]) -> torch.Tensor:
    """In the order in which they lay before a step that replaced them."""
    if weights.dtype is torch.float32 and weights.stride() == strides and is_plain(weights):
        return weights
    return torch.empty_strided(shape, strides).copy_(weights)
