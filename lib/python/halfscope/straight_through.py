"""Rounding with the straight-through gradient: an operation of PyTorch, which is imported with this module only."""

from __future__ import annotations

from typing import Any

import torch

from halfscope import _core


class StraightThrough(torch.autograd.Function):
    """halfscope.round forward; backward the gradient as it comes, in the type of the input."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, quantizer: str, axis: int, seed: int, step: int) -> torch.Tensor:
        ctx.dtype = tensor.dtype
        rounded: Any = _core.round(tensor, quantizer, axis=axis, seed=seed, step=step)
        return rounded

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None, None, None]:
        return gradient.to(ctx.dtype), None, None, None, None
