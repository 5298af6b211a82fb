"""Error of a model's weight gradients at several loss scales, beside FP32's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from statistics import median

import torch

from halfscope.torch.counts.ranks import is_fully_sharded
from halfscope.torch.steps.weight_gradients import checked_loss, finite_loss, gradients, gradients_within, kept

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
    with kept(model) as restore:
        reference = gradients(finite_loss(checked_loss(loss())), weights, 1.0)
        probes = []
        for scale in scales:
            restore()
            if within is None:
                with torch.autocast(device_type, dtype=torch.float16):
                    value = checked_loss(loss())
                found = gradients(value, weights, scale)
            else:
                found = gradients_within(within(), model, loss, scale)
            probes.append(_compared(scale, reference, found))
    return probes


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
