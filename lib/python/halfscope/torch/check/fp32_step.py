"""The step in FP32 once: its gradients counted against the format, and the updates that it makes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from halfscope import ScaleAdvice
from halfscope.torch.check.subject import Subject
from halfscope.torch.counts.histograms import Observations
from halfscope.torch.counts.totals import Totals
from halfscope.torch.doctor.failures import is_finite
from halfscope.torch.doctor.noisy_runs import FP32_UNIT
from halfscope.torch.doctor.outcomes import norm
from halfscope.torch.doctor.program import Run, Trial
from halfscope.torch.private import without_function_modes, without_modes
from halfscope.torch.steps.backward_gradients import BackwardGradients, hook_gradient
from halfscope.torch.tensors.distance import distance_sums
from halfscope.torch.tensors.elements import Choice
from halfscope.torch.watch.layers import Layers
from halfscope.torch.weak_hooks import WeakHook

_SMALL = 2.0**-12  # part of the norm of all gradients together, below which a gradient may be round-off
_LOST = 0.2  # part of its norm that changes by one rounding of each result to FP32: it is round-off


@dataclass
class Counter:
    """Hooks that count the gradients of all layers' outputs and of all weights."""

    model: torch.nn.Module
    scale: float
    counts: Observations
    layers: Layers = field(init=False)
    weights: BackwardGradients = field(init=False)

    def __post_init__(self) -> None:
        self.layers = Layers(self.model, Choice("*", ()), self._see_output)
        parameters = {name: weight for name, weight in self.model.named_parameters() if weight.is_floating_point()}
        self.weights = BackwardGradients(parameters, self._see_weights)

    def __enter__(self) -> Counter:
        self.layers.hook()
        self.weights.hook()
        return self

    def __exit__(self, *_: object) -> None:
        self.layers.unhook()
        self.weights.unhook()
        self.counts.finish()

    def _see_output(self, name: str, tensor: torch.Tensor) -> None:
        if tensor.requires_grad:
            with without_function_modes(), without_modes():
                hook_gradient(tensor, WeakHook(self._see_gradient, name, tensor.output_nr))

    def _see_gradient(self, name: str, place: int, gradients: Any) -> None:
        """gradients: of all results of an operation, or, of a leaf, its gradient."""
        gradient = gradients[place] if isinstance(gradients, tuple) else gradients
        if gradient is not None:
            with without_function_modes(), without_modes():
                self.counts.count("activation_gradient", name, gradient, self.scale)

    def _see_weights(self, gradients: dict[str, torch.Tensor]) -> None:
        with without_function_modes(), without_modes():
            self.counts.recount("weight_gradient", gradients, self.scale)


@dataclass(frozen=True)
class Fp32Step:
    """advice: on the loss scale. updates: by weight, what the step added to it."""

    is_finite: bool
    advice: ScaleAdvice
    updates: dict[str, torch.Tensor]
    tensors: int  # gradients that were counted
    unreadable: dict[str, str]  # by tensor, for which reason it was not counted


def run_in_fp32(subject: Subject) -> Fp32Step:
    """Notes in the subject the 16-bit types that the step asks for itself; counts anew where these are others."""
    run, counts = _counted(subject)
    subject.take_types(run.narrow_types | subject.narrow_weights)
    if counts.format != subject.format.name:
        run, counts = _counted(subject)
    totals = Totals(subject.format.name)
    totals.add(counts)
    totals.of_no_size = _of_no_size(subject, run)
    updates, tensors = _updates(subject, run), len(totals.gradients())
    return Fp32Step(is_finite(run.outcome), totals.advise_scale(), updates, tensors, counts.unreadable)


def _counted(subject: Subject) -> tuple[Run, Observations]:
    counts = Observations(subject.format.name)
    with Counter(subject.model, subject.scale, counts):
        run = subject.program().run(Trial(is_exact=True))
    return run, counts


def _of_no_size(subject: Subject, run: Run) -> set[str]:
    """Weight gradients that FP32's own round-off makes, as that of a bias in front of a batch norm, which is 0."""
    gradients = run.outcome.gradients
    norms = {name: norm(gradient) for name, gradient in gradients.items()}
    together = math.hypot(*norms.values())
    small = [name for name, size in norms.items() if 0 < size < _SMALL * together]
    if not small:
        return set()
    noisy = subject.program().run(Trial(is_exact=True, noise=FP32_UNIT, seed=1)).outcome.gradients
    errors = {name: distance_sums(noisy[name], gradients[name]).squared_error for name in small if name in noisy}
    return {name for name, squared in errors.items() if math.sqrt(squared) > _LOST * norms[name]}


def _updates(subject: Subject, run: Run) -> dict[str, torch.Tensor]:
    weights = dict(subject.model.named_parameters())
    return {name: change for name, change in run.outcome.changes.items() if name in weights}
