"""`probe_scales`: error of a model's weight gradients under FP16 autocast or a policy at several loss scales."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch

from halfscope.torch.emulate.emulation import emulation_without_optimizer
from halfscope.torch.search.scale_errors import SCALES, ScaleProbe, TensorError, errors_at

__all__ = ["ScaleProbe", "TensorError", "probe_scales"]


def probe_scales(
    model: torch.nn.Module,
    loss: Callable[[], torch.Tensor],
    scales: Iterable[float] = SCALES,
    *,
    device_type: str | None = None,
    policy: Any = None,
) -> list[ScaleProbe]:
    """Computes one step's weight gradients at each scale under FP16 autocast, and their errors beside FP32's.

    loss: computes the scalar loss of one batch with `model`, the same batch at each call, without autocast of its own.
    device_type: of autocast; by default that of the first parameter.
    policy: of `emulate`, whose formats take the place of autocast. One forward and one backward pass for each scale,
    and one in FP32. Gradients, buffers and the random numbers of PyTorch, NumPy and Python are as before afterwards.

    Raises ValueError without scales, for a scale that is not positive, a loss that is no scalar or not finite, and a
    model without parameters that need a gradient; TypeError for a model that fully_shard has sharded.
    """
    within = None if policy is None else lambda: emulation_without_optimizer(model, policy)
    return errors_at(model, loss, scales, device_type, within)
