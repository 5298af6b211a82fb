"""Error of a model's weight gradients at several loss scales, beside FP32's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from statistics import median

import torch

from halfscope.torch.counts.ranks import is_fully_sharded
from halfscope.torch.steps.snapshot import Buffers, RandomNumbers

SCALES = tuple(2.0**exponent for exponent in range(0, 25, 4))


@dataclass(frozen=True)
class TensorError:
    """One weight gradient at a scale: norm of the difference to FP32's over the norm of FP32's, and their cosine."""

    tensor: str
    relative_error: float
    cosine: float


@dataclass(frozen=True)
class ScaleProbe:
    """The weight gradients of one step at a loss scale, after unscaling."""

    scale: float
    finite: bool
    tensors: tuple[TensorError, ...]  # weights that FP32 gives a gradient other than zero

    @property
    def error(self) -> float:
        """The median of the relative errors; infinite where a gradient overflows."""
        if not self.finite:
            return float("inf")
        return median(tensor.relative_error for tensor in self.tensors) if self.tensors else 0.0


def errors_at(
    model: torch.nn.Module,
    loss: Callable[[], torch.Tensor],
    scales: Iterable[float],
    device_type: str | None = None,
    within: Callable[[], AbstractContextManager] | None = None,
) -> list[ScaleProbe]:
    """Errors of `probe_scales`; within: context of a pass, by default FP16 autocast."""
    scales = [float(scale) for scale in scales]
    if not scales or not all(0 < scale < float("inf") for scale in scales):
        raise ValueError(f"scales = {scales}: give positive numbers")
    if is_fully_sharded(model):
        raise TypeError("probe_scales: the model is sharded by fully_shard; probe it before that, on one process")
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    if not weights:
        raise ValueError("the model has no parameter that needs a gradient")
    device_type = device_type or next(iter(weights.values())).device.type
    with _kept(model) as restore:
        reference = _gradients(_finite(_checked(loss())), weights, 1.0)
        probes = []
        for scale in scales:
            restore()
            if within is None:
                with torch.autocast(device_type, dtype=torch.float16):
                    value = _checked(loss())
                found = _gradients(value, weights, scale)
            else:
                found = _gradients_within(within(), model, loss, scale)
            probes.append(_compared(scale, reference, found))
    return probes


def _checked(loss: torch.Tensor) -> torch.Tensor:
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise ValueError("loss() should return a tensor of one element")
    return loss


def _finite(loss: torch.Tensor) -> torch.Tensor:
    if not torch.isfinite(loss).all():
        raise ValueError(f"the loss is {loss.item()}; a probe needs a finite one")
    return loss


def _gradients(loss: torch.Tensor, weights: dict[str, torch.nn.Parameter], scale: float) -> dict[str, torch.Tensor]:
    """Gradients of `scale` times the loss, unscaled, in float64."""
    found = torch.autograd.grad(loss.float() * scale, list(weights.values()), allow_unused=True)
    return {name: _unscaled(grad, scale) for name, grad in zip(weights, found) if grad is not None}


def _gradients_within(
    context: AbstractContextManager, model: torch.nn.Module, loss: Callable[[], torch.Tensor], scale: float
) -> dict[str, torch.Tensor]:
    """Gradients of a pass inside of `context`, as they arrive at the weights; the weights' own gradients stay."""
    kept = {name: weight.grad for name, weight in model.named_parameters()}
    for weight in model.parameters():
        weight.grad = None
    try:
        with context:
            (_checked(loss()).float() * scale).backward()
        found = {name: weight.grad for name, weight in model.named_parameters()}
    finally:
        for name, weight in model.named_parameters():
            weight.grad = kept[name]
    return {name: _unscaled(grad, scale) for name, grad in found.items() if grad is not None}


def _unscaled(gradient: torch.Tensor, scale: float) -> torch.Tensor:
    """The gradient in float64; a sparse one with its zeros."""
    exact = gradient.detach().double()
    return (exact if exact.layout is torch.strided else exact.to_dense()) / scale


def _compared(scale: float, reference: dict[str, torch.Tensor], probed: dict[str, torch.Tensor]) -> ScaleProbe:
    tensors = []
    finite = all(bool(torch.isfinite(grad).all()) for grad in probed.values())
    for name, expected in reference.items():
        norm = expected.norm()
        if norm == 0 or name not in probed:
            continue
        grad = probed[name]
        error = ((grad - expected).norm() / norm).item()
        length = grad.norm() * norm
        cosine = (torch.dot(grad.flatten(), expected.flatten()) / length).item() if length > 0 else 0.0
        tensors.append(TensorError(name, error, cosine))
    return ScaleProbe(scale, finite, tuple(tensors))


@contextmanager
def _kept(model: torch.nn.Module) -> Iterator[Callable[[], None]]:
    """Keeps buffers and random numbers as they are on entry: `restore()` brings them back, and so does the end."""
    buffers, random = Buffers.of(model), RandomNumbers.now()

    def restore() -> None:
        buffers.restore()
        random.restore()

    try:
        yield restore
    finally:
        restore()
