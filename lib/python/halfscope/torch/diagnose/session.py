"""One step of a training, computed as often as a diagnosis asks, always from the same weights and random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.diagnose.recorder import Recorder
from halfscope.torch.doctor.outcomes import loss_in
from halfscope.torch.emulate.emulation import Emulation
from halfscope.torch.emulate.training import Options, Trainee
from halfscope.torch.policy import FP32, Policy
from halfscope.torch.steps.snapshot import Snapshot
from halfscope.torch.tensors.elements import HALF, all_finite


@dataclass
class Outcome:
    """The result of a step."""

    loss: float | None  # None of a step that returns none
    gradients: dict[str, torch.Tensor]
    buffers: dict[str, torch.Tensor]
    bad_gradients: list[str]  # parameters with a gradient that is not finite
    bad_buffers: list[str]
    bad_weights: list[str]
    recorder: Recorder | None = None
    emulation: Emulation | None = None
    error: str = ""

    @property
    def is_finite(self) -> bool:
        loss_is = self.loss is None or math.isfinite(self.loss)
        return loss_is and not (self.bad_gradients or self.bad_buffers or self.bad_weights or self.error)


@dataclass
class Session:
    """A model with the step that is diagnosed."""

    trainee: Trainee
    step: Callable[[], Any]
    policy: Policy
    format: Format
    scale: float
    attention: str = "fused"
    is_forward_only: bool = False  # nothing is kept for a backward pass, which takes most of a step's memory
    outside: Iterable[torch.Tensor] = ()  # tensors beside the model's and the optimizers' that the step writes to
    before: Snapshot = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self.before = Snapshot.of(self.trainee)
        self._outside_before = [(tensor, tensor.clone()) for tensor in self.outside]

    def run(self, in_fp32: Iterable[str] = (), policy: Policy | None = None) -> Outcome:
        """The step in the format. in_fp32: rows of operations that are computed so."""
        recorder = Recorder(self.format, self.scale)
        options = Options(
            compare_steps=frozenset({1}), every=1, attention=self.attention, in_fp32=frozenset(in_fp32),
            observers=recorder.observers,
        )  # fmt: skip
        emulation = Emulation(self.trainee, policy or self.policy, options, before=self.before)
        self._restore()
        with emulation:
            loss = self._run_step()
        outcome = self._outcome(loss)
        outcome.recorder, outcome.emulation = recorder, emulation
        return outcome

    @property
    def is_half(self) -> bool:
        """Whether the weights have 16 bits themselves, so that there is no FP32 step beside."""
        return any(parameter.dtype in HALF for parameter in self.trainee.model.parameters())

    @property
    def narrow_state(self) -> Format | None:
        """The format that the optimizer computes in; None of FP32."""
        if self.is_half:
            return self.format
        state = self.policy.base.optimizer_state
        return None if state == FP32 else Format.of(state)

    def run_with_fp32_state(self) -> Outcome | None:
        """Outcome with weights and optimizer state in FP32; None if they have 16 bits themselves."""
        if self.is_half:
            return None
        return self.run(policy=self.policy.keeping_fp32([], ["master_weight", "optimizer_state"]))

    def run_fp32(self, observer: AbstractContextManager | None = None) -> Outcome:
        """The step as PyTorch computes it."""
        self._restore()
        with observer or nullcontext():
            loss = self._run_step()
        return self._outcome(loss)

    def close(self) -> None:
        """Leaves the model, the optimizers and the gradients as they were."""
        self._restore()
        for parameter, gradient, elements in self._kept_gradients:
            parameter.grad = gradient
            if gradient is not None:
                gradient.copy_(elements)

    def keep_gradients(self) -> None:
        self._kept_gradients = [
            (parameter, parameter.grad, None if parameter.grad is None else parameter.grad.clone())
            for parameter in self.trainee.model.parameters()
        ]

    def _restore(self) -> None:
        self.before.restore(self.trainee)
        for tensor, elements in self._outside_before:
            tensor.copy_(elements)
        for parameter in self.trainee.model.parameters():
            parameter.grad = None

    def _run_step(self) -> float | None:
        self.runs += 1
        with torch.no_grad() if self.is_forward_only else nullcontext():
            result = self.step()
        loss = loss_in(result)
        if loss is None:
            return float(result) if isinstance(result, float) else None
        if loss.requires_grad and not any(p.grad is not None for p in self.trainee.model.parameters()):
            (loss.float().sum() * self.scale).backward()
        return float(loss.detach().float().sum())

    def _outcome(self, loss: float | None) -> Outcome:
        model = self.trainee.model
        gradients = {name: p.grad.detach().clone() for name, p in model.named_parameters() if p.grad is not None}
        return Outcome(
            loss,
            gradients,
            {name: buffer.detach().clone() for name, buffer in model.named_buffers()},
            [name for name, gradient in gradients.items() if not all_finite(gradient)],
            _not_finite(dict(model.named_buffers())),
            _not_finite(dict(model.named_parameters())),
        )


def _not_finite(tensors: dict[str, torch.Tensor]) -> list[str]:
    return [name for name, tensor in tensors.items() if tensor.is_floating_point() and not all_finite(tensor)]
