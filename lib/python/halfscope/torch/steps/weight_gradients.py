"""Gradients of a model's weights in one pass, which leaves the model as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import torch

from halfscope.torch.steps.snapshot import Buffers, RandomNumbers


def checked_loss(loss: torch.Tensor) -> torch.Tensor:
    """Raises ValueError for a loss that is no scalar."""
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise ValueError("loss() should return a tensor of one element")
    return loss


def finite_loss(loss: torch.Tensor) -> torch.Tensor:
    """Raises ValueError for a loss that is not finite."""
    if not torch.isfinite(loss).all():
        raise ValueError(f"the loss is {loss.item()}; a probe needs a finite one")
    return loss


def gradients(loss: torch.Tensor, weights: dict[str, torch.nn.Parameter], scale: float) -> dict[str, torch.Tensor]:
    """Gradients of `scale` times the loss, unscaled, in float64."""
    found = torch.autograd.grad(loss.float() * scale, list(weights.values()), allow_unused=True)
    return {name: _unscaled(grad, scale) for name, grad in zip(weights, found) if grad is not None}


def gradients_within(
    context: AbstractContextManager, model: torch.nn.Module, loss: Callable[[], torch.Tensor], scale: float
) -> dict[str, torch.Tensor]:
    """Gradients of a pass inside of `context`, as they arrive at the weights; the weights' own gradients stay."""
    before = {name: weight.grad for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = None
    try:
        with context:
            (checked_loss(loss()).float() * scale).backward()
        found = {name: weight.grad for name, weight in model.named_parameters()}
    finally:
        for name, weight in model.named_parameters():
            weight.grad = before[name]
    return {name: _unscaled(grad, scale) for name, grad in found.items() if grad is not None}


def _unscaled(gradient: torch.Tensor, scale: float) -> torch.Tensor:
    """The gradient in float64; a sparse one with its zeros."""
    exact = gradient.detach().double()
    return (exact if exact.layout is torch.strided else exact.to_dense()) / scale


@contextmanager
def kept(model: torch.nn.Module) -> Iterator[Callable[[], None]]:
    """Keeps buffers and random numbers as they are on entry: `restore()` brings them back, and so does the end."""
    buffers, random = Buffers.of(model), RandomNumbers.now()

    def restore() -> None:
        buffers.restore()
        random.restore()

    try:
        yield restore
    finally:
        restore()
