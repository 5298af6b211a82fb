"""Casts of a run: from the format to FP32 and back, with the gradients that a script's own casts have."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.doctor.rounding_mode import RoundingMode
from halfscope.torch.doctor.storage_kinds import Numbers
from halfscope.torch.private import without_dispatch_modes, without_function_modes


def _copy(tensor: torch.Tensor, mode: RoundingMode, kind: Numbers) -> torch.Tensor:
    with without_function_modes():
        copy = tensor.clone()
        set_kind(copy, mode, kind)
    return copy


def set_kind(tensor: torch.Tensor, mode: RoundingMode, kind: Numbers) -> None:
    """Declares what a tensor holds, and rounds it to numbers of the format where it is to hold these."""
    mode.kinds.set(tensor, kind)
    if kind is Numbers.NARROW:
        pause = without_dispatch_modes()
        mode.rounder(tensor.detach())
        del pause


class _Cast(torch.autograd.Function):
    """A copy of another kind; its gradient has the kind of the source."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, mode: RoundingMode, kind: Numbers) -> torch.Tensor:
        ctx.mode = mode
        ctx.back = Numbers.NARROW if mode.kind_of(tensor) is Numbers.NARROW else Numbers.WIDE
        return _copy(tensor, mode, kind)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return _copy(gradients[0], ctx.mode, ctx.back), None, None


def cast(tensor: torch.Tensor, mode: RoundingMode, kind: Numbers) -> torch.Tensor:
    """The tensor in another kind of numbers."""
    result: torch.Tensor = _Cast.apply(tensor, mode, kind)
    return result
