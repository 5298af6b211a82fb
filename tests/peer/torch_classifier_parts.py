"""Width, order and loss of the image classifiers written for PyTorch."""

from __future__ import annotations

import torch
from torch.nn import functional

CLASSES = 10
AUXILIARY_WEIGHT = 0.3
Logits = list[torch.Tensor]  # the classifier's, then each auxiliary head's


def narrow(channels: int) -> int:
    """An eighth, rounded to the nearest."""
    return (channels + 4) // 8


def classification_loss(logits: Logits, labels: torch.Tensor, smoothing: float = 0.0) -> torch.Tensor:
    losses = [functional.cross_entropy(one, labels, label_smoothing=smoothing) for one in logits]
    return losses[0] + AUXILIARY_WEIGHT * sum(losses[1:], torch.zeros_like(losses[0]))


def flat(x: torch.Tensor) -> torch.Tensor:
    """Rows, columns, channels: the order of the simulator's linear weights."""
    return x.permute(0, 2, 3, 1).flatten(1)
