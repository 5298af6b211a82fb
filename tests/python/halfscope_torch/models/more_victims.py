"""Models whose findings no test of a door holds as a whole: hidden, reused, compared and recomputed infinities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from near_victims import behind, random
from victims import Masked, Normalized, Victim


def _of_large(function: Callable[[torch.Tensor], torch.Tensor]) -> Victim:
    """A function of numbers of which the format makes infinities when they are multiplied by 300."""
    return behind(function, torch.full((2, 8), 300.0))


def hidden_by_relu() -> Victim:
    return _of_large(lambda h: torch.relu(-300 * h))


def hidden_by_sigmoid() -> Victim:
    return _of_large(lambda h: torch.sigmoid(300 * h))


def hidden_by_clamp() -> Victim:
    return _of_large(lambda h: (300 * h).clamp(max=1))


def clamped_in_place() -> Victim:
    def function(h: torch.Tensor) -> torch.Tensor:
        h = 300 * h
        h.clamp_(max=1)
        return h * 1e5

    return _of_large(function)


def compared() -> Victim:
    return _of_large(lambda h: torch.where(300 * h > 1e4, torch.ones_like(h), h))


def unused() -> Victim:
    def function(h: torch.Tensor) -> torch.Tensor:
        _ = 300 * h
        return h

    return _of_large(function)


def mask_of_two_softmaxes() -> Victim:
    padding = torch.zeros(4, 4).fill_diagonal_(-1e9)

    def function(y: torch.Tensor) -> torch.Tensor:
        scores = y @ y.T + padding
        return torch.softmax(scores, -1) + torch.softmax(scores, 0)

    return behind(function, random(4, 8))


def _mask(fill: float, after: Callable[[torch.Tensor], torch.Tensor]) -> Victim:
    """A part of each row is masked."""
    model = Masked(lambda scores, padding: after(scores.masked_fill(padding, fill)))
    x, padding = random(2, 3), torch.tensor([[False, True, True], [False, False, True]])
    return model, lambda: model(x, padding).square().sum(), {}


def mask_without_harm() -> Victim:
    return _mask(-1e9, lambda scores: scores)


def mask_of_infinity() -> Victim:
    return _mask(float("-inf"), lambda scores: scores)


def fault_behind_a_mask() -> Victim:
    return _mask(-1e9, lambda scores: (scores.softmax(-1) * 300) ** 2)


class _Checkpointed(nn.Module):
    def __init__(self, use_reentrant: bool) -> None:
        super().__init__()
        self.inner, self.p, self.use_reentrant = Normalized(1e-5), nn.Parameter(torch.ones(4)), use_reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = checkpoint(self.inner, x * self.p, use_reentrant=self.use_reentrant)
        return found


def _checkpointed(use_reentrant: bool) -> Victim:
    model, x = _Checkpointed(use_reentrant), torch.cat([random(3, 4), torch.zeros(1, 4)])
    return model, lambda: model(x).sum(), {}


def gradient_in_a_checkpoint() -> Victim:
    return _checkpointed(False)


def gradient_in_a_reentrant_checkpoint() -> Victim:
    return _checkpointed(True)


def product_in_a_checkpoint() -> Victim:
    softmax: Callable[[torch.Tensor], torch.Tensor] = lambda y: torch.softmax(y @ y.transpose(-1, -2), -1)  # noqa: E731
    return behind(partial(checkpoint, softmax, use_reentrant=False), 200 * random(4, 64))


def padding_alone() -> Victim:
    """Attention whose second row has no key, NaN in FP32 too."""
    model, padding = nn.MultiheadAttention(8, 2, batch_first=True), torch.tensor([[True] * 3, [False] * 3])
    x = random(2, 3, 8)
    return model, lambda: model(x, x, x, key_padding_mask=padding)[0].sum(), {}


def not_finite_in_fp32() -> Victim:
    return behind(lambda y: ((y[:, None] - y[None]) ** 2).sum(-1).sqrt(), random(2, 8))


def healthy() -> Victim:
    model: Any = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
    return model, lambda: nn.functional.cross_entropy(model(random(16, 20)), torch.arange(16) % 5), {}


def a_tuple() -> Victim:
    """A closure whose loss is the first of several results."""
    model = nn.Linear(4, 4)
    return model, lambda: (model(random(2, 4)).sum(), 0), {}
