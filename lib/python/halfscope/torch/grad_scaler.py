"""Loss scaling of a PyTorch training by any of halfscope's loss scalers: `halfscope.torch.GradScaler`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from halfscope import Histogram, LossScaler, _core
from halfscope.torch.device.pytorch_bins import histogram_bins
from halfscope.torch.private import sparse_values


@dataclass
class _ScaledGradients:
    """Weight gradients of one optimizer, times the scale."""

    finite: bool = True
    max_abs: float = 0.0
    histogram: Histogram | None = None
    stepped: bool = False
    gradients: int = 0  # how many parameters have one

    def add(self, other: _ScaledGradients) -> None:
        self.finite = self.finite and other.finite
        self.max_abs = max(self.max_abs, other.max_abs)
        if self.histogram is not None and other.histogram is not None:
            self.histogram.merge(other.histogram)


class GradScaler:
    """Stands in for torch.amp.GradScaler, with the rule of any loss scaler.

    scaler: a name of halfscope.list_scalers(), such as "dynamic", which is torch.amp.GradScaler's own rule, "headroom"
        or "popart"; or a number, which is a constant scale and never skips a step.
    enabled: without it the loss is not scaled and every step is taken.
    options: as halfscope.LossScaler has them, such as growth_interval=500.

    The largest magnitude or the histogram, where the rule looks at it, is that of the scaled gradients of all
    optimizers that step before `update`. A step is skipped where a gradient is infinite or NaN.

    Raises ValueError for an unknown name or option, and for "layerwise", which acts inside the backward pass.
    """

    def __init__(self, scaler: str | float = "dynamic", *, enabled: bool = True, **options: float) -> None:
        self._scaler = LossScaler(scaler, **options)
        inside_backward = {row["scaler"] for row in _core.scaler_table() if not row["replays"]}
        if self._scaler.name in inside_backward:
            raise ValueError(f"GradScaler: {self._scaler.name} scales inside the backward pass; give another")
        self._enabled = enabled
        self._seen: dict[int, _ScaledGradients] = {}  # by optimizer, since the last update

    def scale(self, outputs: Any) -> Any:
        """`outputs`, a tensor or an iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, torch.Tensor):
            return outputs * self._factor(outputs.device)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if isinstance(outputs, Iterable):
            return map(self.scale, outputs)
        raise ValueError(f"GradScaler.scale: give a tensor or an iterable of tensors, not {type(outputs).__name__}")

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        """Divides the gradients of the optimizer's parameters by the scale, before clipping, say; once per step."""
        if not self._enabled:
            return
        if id(optimizer) in self._seen:
            raise RuntimeError(
                "GradScaler.unscale_: already called for this optimizer since the last update(). With "
                "accumulated gradients "
                "call it behind the last micro-batch: the gradients of the first were divided by "
                f"{self.get_scale():g} already"
            )
        gradients = list(_gradients(optimizer))
        with torch.no_grad():
            seen = self._seen[id(optimizer)] = self._look_at(gradients)
            seen.gradients = len(gradients)
            for gradient in gradients:
                # As torch.amp.GradScaler has it: the reciprocal in double, the product in float.
                gradient.mul_(self._factor(gradient.device).double().reciprocal().float())

    def step(self, optimizer: torch.optim.Optimizer, *arguments: Any, **options: Any) -> Any:
        """optimizer.step(...) with unscaled gradients; skipped, None, where one of them is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*arguments, **options)
        if "closure" in options:
            raise RuntimeError("GradScaler.step: a closure cannot be used with a scaled loss")
        if id(optimizer) not in self._seen:
            self.unscale_(optimizer)
        seen = self._seen[id(optimizer)]
        if seen.stepped:
            raise RuntimeError("GradScaler.step: already called for this optimizer since the last update()")
        if not seen.gradients:
            # As torch.amp.GradScaler, which asserts that it has looked at some.
            raise AssertionError(
                f"GradScaler.step: none of the {_count(optimizer)} parameters of this {type(optimizer).__name__} has a "
                "gradient; step it in iterations that give it some"
            )
        seen.stepped = True
        skips = not seen.finite and self._scaler.needs != "none"
        return None if skips else optimizer.step(*arguments, **options)

    def update(self) -> None:
        """Ends the step: tells the rule of its gradients. Raises RuntimeError where the rule is to end the run."""
        if not self._enabled:
            return
        if not self._seen:
            raise RuntimeError("GradScaler.update: no optimizer was unscaled or stepped since the last update()")
        together, *others = self._seen.values()
        for other in others:
            together.add(other)
        self._seen = {}
        max_abs = together.max_abs if together.finite else None
        self._scaler.update(finite=together.finite, max_abs=max_abs, histogram=together.histogram)

    def get_scale(self) -> float:
        """The factor of the next loss; 1 where not enabled."""
        return self._scaler.scale if self._enabled else 1.0

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """The rule by name, its options and what it remembers; empty where not enabled."""
        if not self._enabled:
            return {}
        return {"scaler": self._scaler.name, "options": self._scaler.options, "state": self._scaler.state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from `state_dict`. Raises ValueError for that of another rule, or of a disabled scaler."""
        if not self._enabled:
            return
        if "state" not in state_dict:
            raise ValueError("GradScaler.load_state_dict: give what state_dict() of an enabled one returned")
        if state_dict["scaler"] != self._scaler.name:
            raise ValueError(
                f"GradScaler.load_state_dict: of '{state_dict['scaler']}'; this one is '{self._scaler.name}'"
            )
        scaler = LossScaler(self._scaler.name, **state_dict["options"])
        scaler.load_state(state_dict["state"])
        self._scaler = scaler

    def __repr__(self) -> str:
        return f"<GradScaler {self._scaler.name}: scale {self.get_scale():g}>"

    def _factor(self, device: torch.device) -> torch.Tensor:
        return torch.full((), self._scaler.scale, dtype=torch.float32, device=device)

    def _look_at(self, gradients: list[torch.Tensor]) -> _ScaledGradients:
        """Looks at gradients as closely as the rule does."""
        if self._scaler.needs == "none":
            return _ScaledGradients()
        largest = _largest(gradients)
        seen = _ScaledGradients(finite=math.isfinite(largest), max_abs=largest)
        if self._scaler.needs == "histogram":
            _core.set_thread_count(torch.get_num_threads())
            seen.histogram = Histogram()
            for gradient in gradients:
                seen.histogram.merge(_histogram(gradient))
        return seen


def _count(optimizer: torch.optim.Optimizer) -> int:
    return sum(len(group["params"]) for group in optimizer.param_groups)


def _gradients(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """The elements of the gradients that the optimizer will use, where they lie."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.dtype is torch.float16:
                raise ValueError("GradScaler: FP16 gradients, which unscaling would flush; keep the weights in FP32")
            if hasattr(gradient, "to_local"):
                raise ValueError("GradScaler: sharded gradients (DTensor), of which each rank would count its own")
            yield sparse_values(gradient) if gradient.is_sparse else gradient


def _largest(gradients: list[torch.Tensor]) -> float:
    """The largest magnitude; infinite or NaN where a gradient is. Waits once for each device."""
    by_device: dict[torch.device, list[torch.Tensor]] = {}
    for gradient in gradients:
        if gradient.numel():
            by_device.setdefault(gradient.device, []).append(torch.linalg.vector_norm(gradient, math.inf).double())
    found = [float(torch.stack(norms).max()) for norms in by_device.values()]
    return math.nan if any(map(math.isnan, found)) else max(found, default=0.0)


def _histogram(gradient: torch.Tensor) -> Histogram:
    if gradient.is_cpu:
        return Histogram(gradient)
    return Histogram.from_bins(histogram_bins(gradient).cpu().numpy())
