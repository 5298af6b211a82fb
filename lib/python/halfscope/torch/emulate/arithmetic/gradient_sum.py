"""Accumulation of gradients over backward passes in a format: `.grad` is rounded after every addition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from halfscope import _core
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.parameters import ModelTensor
from halfscope.torch.policy import FP32
from halfscope.torch.weak_hooks import WeakHook


@dataclass
class Additions:
    """Additions to elements of gradients: those that were not zero, and among these the ones that changed nothing."""

    nonzero: int = 0
    lost: int = 0


class GradientSum:
    """Rounds the gradients of parameters as they are added up.

    The sum of two numbers of a format is rounded to FP32 first, which has more than twice the bits of FP16 and BF16:
    the two roundings are one.
    """

    def __init__(self, quantizer: str, caster: Caster, additions: Additions) -> None:
        self._quantizer, self._caster, self._additions = quantizer, caster, additions
        self._held: dict[str, torch.Tensor] = {}  # as the last addition left it

    def follow(self, parameters: list[ModelTensor]) -> list[Callable[[], None]]:
        """Sets the hooks; returns what undoes that."""
        return [
            owned.tensor.register_post_accumulate_grad_hook(WeakHook(self._round, owned)).remove
            for owned in parameters
            if owned.tensor.requires_grad and owned.tensor.is_leaf
        ]

    def _round(self, owned: ModelTensor, tensor: torch.Tensor) -> None:
        gradient = tensor.grad
        if gradient is None or gradient.dtype is not torch.float32 or gradient.layout is not torch.strided:
            return
        exact = gradient.detach().clone(memory_format=torch.contiguous_format)
        rounded = exact.clone()
        self._caster.round(rounded, self._quantizer, "weight_gradient", f"{owned.name} accumulated")
        gradient.detach().copy_(rounded)
        before = self._held.get(owned.name)
        if before is not None and before.shape == rounded.shape:
            moved = (exact != before) & (before != 0)
            self._additions.nonzero += int(moved.sum())
            self._additions.lost += int((moved & (rounded == before)).sum())
        self._held[owned.name] = rounded

    def begin_step(self) -> None:
        """After an update gradients begin anew."""
        self._held = {}


def checked_gradient_sum(quantizer: str | None) -> str | None:
    """Its own name, None for FP32. Raises ValueError for an unknown format."""
    if quantizer is None:
        return None
    own = str(_core.describe_quantizer(quantizer)["quantizer"])
    return None if own == FP32 else own
