"""Scores of all units in all formats over calibration batches, in FP32 or beside a mixture of formats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from halfscope.torch.sensitivity.calibration import Calibration
from halfscope.torch.sensitivity.gradient_pass import Errors, GradientPass, Mixture
from halfscope.torch.sensitivity.operand_images import OperandFormat
from halfscope.torch.sensitivity.samples import Floats, GroupSamples, Samples, by_sequence
from halfscope.torch.sensitivity.unit_scores import Score, scores_of
from halfscope.torch.sensitivity.units import Units
from halfscope.torch.sensitivity.watched_products import WatchedProducts


@dataclass(frozen=True)
class Subject:
    """A model's units in groups that share a format, and the formats that they may have."""

    calibration: Calibration
    units: Units
    groups: dict[str, tuple[str, ...]]
    formats: Mapping[str, OperandFormat]
    seed: int

    def elements(self, group: str) -> int:
        """Elements of the weights of a group's units."""
        return sum(self.units.by_name[unit].elements for unit in self.groups[group])

    def bits(self, mixture: Mapping[str, str]) -> float:
        """Bits of the weights of groups in their formats, scales included."""
        return math.fsum(self.formats[format].bits * self.elements(group) for group, format in mixture.items())

    def group_of(self, unit: str) -> str:
        """The name of a unit's group."""
        return next(name for name, group in self.groups.items() if unit in group)

    def is_scored_only(self, group: str) -> bool:
        """Whether one of its units is an embedding or a cache, for which `emulate` has no rule."""
        units = (self.units.by_name[unit] for unit in self.groups[group])
        return any(unit.is_embedding or unit.is_cache for unit in units)


@dataclass
class Measured:
    """Sums of a measurement; failures: the tensor that was not finite, by unit and format."""

    groups: dict[str, GroupSamples]
    failures: dict[tuple[str, str], str] = field(default_factory=dict)
    terms: Floats = field(default_factory=lambda: np.zeros(0))  # terms of the loss, by sequence

    def scores(self, formats: tuple[str, ...], seed: int) -> dict[tuple[str, str], Score]:
        """By group and format."""
        return {
            (group, format): score
            for group, samples in self.groups.items()
            for format, score in zip(formats, scores_of(samples, seed))
        }


def drawn_scores(subject: Subject, mixture: Mixture | None = None) -> Measured:
    """Inner products of each unit's error, beside the mixture's, with gradients of labels that its output draws."""
    return _measured(subject, mixture or {}, is_soft=False)


def first_order(subject: Subject, mixture: Mixture) -> dict[tuple[str, str], float]:
    """Change of the KL from FP32, per term, to first order: by group and format, beside the mixture."""
    measured = _measured(subject, mixture, is_soft=True)
    total = float(measured.terms.sum())
    return {
        (group, format): float(value) / total
        for group, samples in measured.groups.items()
        for format, value in zip(subject.formats, np.concatenate(samples.sequence).sum(0))
    }


def _measured(subject: Subject, mixture: Mixture, is_soft: bool) -> Measured:
    calibration, family = subject.calibration, subject.calibration.family
    samples = Samples(subject.groups, subject.units.layouts, tuple(subject.formats))
    errors = Errors(subject.formats, samples, mixture)
    passing = GradientPass(calibration, subject.units, mixture, errors.look)
    generator, every = None, []
    with calibration.evaluating():
        for batch in calibration.batches:
            output = passing.output(batch)
            seen = _finite(output.detach())
            generator = generator or torch.Generator(seen.device).manual_seed(subject.seed)
            gradient = family.soft(fp32_output(calibration, batch), seen) if is_soft else family.drawn(seen, generator)
            terms = calibration.terms(batch, seen)
            output.backward(calibration.weighted(gradient, terms))
            every.append(by_sequence(terms))
            samples.end_batch(every[-1])
    return Measured(samples.groups, errors.failures, np.concatenate(every))


def fp32_output(calibration: Calibration, batch: object) -> torch.Tensor:
    """The output of the model as it is, by the functions that a mixture's is computed by.

    Raises ValueError where it is not finite.
    """
    watched = WatchedProducts(calibration.model, lambda module, call, run: run())
    with watched.watching(), torch.no_grad():
        return _finite(calibration.output(batch))


def _finite(output: torch.Tensor) -> torch.Tensor:
    if not output.isfinite().all():
        raise ValueError("sensitivity: the output is not finite in FP32; diagnose(model, loss) names the operation")
    return output
