"""The weights before and after an optimizer's step, in memory that is kept: a fresh copy costs more than counting."""

from __future__ import annotations

from typing import NamedTuple

import torch

from halfscope._core import KeptWeights
from halfscope.torch.counts.histograms import Observations
from halfscope.torch.device.waiting import Region, region_of, where_counted
from halfscope.torch.tensors.elements import Unreadable, elements_of, format_of

_NARROW = (torch.float16, torch.bfloat16)


class WeightPlace(NamedTuple):
    """Place of weights before a step."""

    region: Region
    shape: torch.Size
    strides: tuple[int, ...]


class Weights:
    """Copies of an optimizer's parameters that have a gradient, where these are counted; none until the first `keep`.

    float32, and float64 of float64; those of 16 bits in their own format.
    """

    def __init__(self, parameters: dict[str, torch.nn.Parameter]) -> None:
        self.parameters = parameters
        self.release()

    def release(self) -> None:
        """Gives the memory of the copies back."""
        self._plain: dict[str, WeightPlace] = {}  # weights of the latest step, by name
        self._others: list[str] = []
        self._narrow: list[str] = []
        self._kept = KeptWeights()
        self._copies: dict[str, torch.Tensor] = {}
        self._differences: dict[tuple[torch.dtype, torch.device], torch.Tensor] = {}

    def keep(self, also_without_gradient: bool) -> None:
        """Copies the weights as they are, before a step; a closure will make gradients only inside of it."""
        self._plain, others = {}, dict[str, torch.Tensor]()
        for name, parameter in self.parameters.items():
            if parameter.grad is None and not also_without_gradient:
                continue
            for elements, region in _located(parameter):
                if region is None or elements.dtype is not torch.float32:
                    others[name] = elements.detach()
                else:
                    self._plain[name] = WeightPlace(region, elements.shape, elements.stride())
        self._kept.keep([kept.region for kept in self._plain.values()])
        self._narrow = [name for name, weights in others.items() if weights.dtype in _NARROW]
        self._others = [name for name in others if name not in self._narrow]
        for name in self._narrow:
            self._copy(name, others[name], others[name].dtype)
        for name in self._others:
            weights = where_counted(others[name])
            self._copy(name, weights, torch.float64 if weights.dtype is torch.float64 else torch.float32)

    def _copy(self, name: str, weights: torch.Tensor, dtype: torch.dtype) -> None:
        known = self._copies.get(name)
        if known is None or known.device != weights.device or known.dtype is not dtype or known.shape != weights.shape:
            known = self._copies[name] = torch.empty(weights.shape, dtype=dtype, device=weights.device)
        known.copy_(weights)

    def count_updates(self, seen: Observations) -> None:
        """Counts what the step did to the weights that were kept before it."""
        now = [_laid_out(self.parameters[name], kept) for name, kept in self._plain.items()]
        for name, moved in zip(self._plain, self._kept.moved([region for region, _ in now], seen.format)):
            seen.updates[name] = moved.counters
            seen.add("update_ratio", name, moved.ratios)
        for name in self._others:
            before = self._copies[name]
            after = where_counted(self.parameters[name]).to(before.dtype)
            seen.count_update(name, before, torch.sub(after, before, out=self._difference(before)))
        for name in self._narrow:
            self._count_narrow(name, seen)

    def _count_narrow(self, name: str, seen: Observations) -> None:
        """Counts the weights with a gradient that stayed: the difference does not show the part that 16 bits lost."""
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


def _located(parameter: torch.Tensor) -> list[tuple[torch.Tensor, Region | None]]:
    """The elements and where they lie, where they are counted by their address; nothing where they cannot be read."""
    region = region_of(parameter)
    if region is not None:
        return [(parameter, region)]
    return [(elements, region_of(elements)) for elements in _readable(parameter)]


def _laid_out(weights: torch.Tensor, kept: WeightPlace) -> tuple[Region, torch.Tensor]:
    """Place of weights in the order that they had before a step replaced them, and what has to stay alive."""
    for elements, region in _located(weights):
        if region is not None and elements.dtype is torch.float32 and elements.stride() == kept.strides:
            return region, elements
    copy = torch.empty_strided(kept.shape, kept.strides).copy_(elements_of(weights))
    region = region_of(copy)
    assert region is not None  # FP32 in memory
    return region, copy
