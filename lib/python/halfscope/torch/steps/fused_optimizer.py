"""Loss scale and skipped steps of fused optimizers, which unscale the gradients themselves, not through GradScaler."""

from __future__ import annotations

import torch


def scale_left(optimizer: torch.optim.Optimizer) -> float:
    """The loss scale that the gradients still carry in the optimizer's step."""
    scale = getattr(optimizer, "grad_scale", None)
    return 1.0 if scale is None else float(scale)


def will_skip(optimizer: torch.optim.Optimizer) -> bool:
    """Whether the scaler has told it of an infinite gradient."""
    found = getattr(optimizer, "found_inf", None)
    return found is not None and float(found) != 0
