"""Trials of mixtures: the true KL from FP32 of a model whose products have their formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from halfscope.torch.sensitivity.calibration import Calibration
from halfscope.torch.sensitivity.gradient_pass import mixed
from halfscope.torch.sensitivity.measurement import Subject, fp32_output
from halfscope.torch.sensitivity.operand_images import OperandFormat
from halfscope.torch.sensitivity.product_calls import ProductCall
from halfscope.torch.sensitivity.samples import Floats, by_sequence
from halfscope.torch.sensitivity.unit_scores import intervals
from halfscope.torch.sensitivity.watched_products import Run, WatchedProducts

ByGroup = Mapping[str, str]
"""Formats of groups by name; groups without one are FP32."""


@dataclass(frozen=True)
class Tried:
    """KL from FP32 of one mixture, by sequence, in nats; terms: of the loss."""

    nats: Floats
    terms: Floats

    @property
    def mean(self) -> float:
        """Nats per term; infinite where the output is not finite."""
        return float(self.nats.sum() / self.terms.sum())

    def interval(self, seed: int) -> tuple[float, float]:
        """95 % over sequences; NaN for few, and where one is infinite."""
        if not np.isfinite(self.nats).all():
            return np.nan, np.nan
        low, high = intervals(self.nats[:, None], self.terms, seed)
        return float(low[0]), float(high[0])

    def less(self, other: Tried, seed: int) -> tuple[float, float]:
        """Interval of how much less KL this one has, sequence by sequence."""
        if not np.isfinite(other.nats).all():
            return np.inf, np.inf
        return Tried(other.nats - self.nats, self.terms).interval(seed)


def unit_formats(subject: Subject, mixture: ByGroup) -> dict[str, OperandFormat]:
    """Formats of the units of a mixture."""
    return {unit: subject.formats[format] for group, format in mixture.items() for unit in subject.groups[group]}


def tried(subject: Subject, mixtures: Sequence[ByGroup], calibration: Calibration | None = None) -> list[Tried]:
    """KL of each mixture: one forward pass of each batch for each of them, and one in FP32."""
    own = calibration or subject.calibration
    formats = [unit_formats(subject, mixture) for mixture in mixtures]
    parts: list[list[Floats]] = []
    terms = []
    with own.evaluating():
        for batch in own.batches:
            reference = fp32_output(own, batch)
            counting = own.terms(batch, reference)
            terms.append(by_sequence(counting))
            parts.append([_divergence(subject, own, batch, (reference, counting), each) for each in formats])
    return [Tried(np.concatenate(each), np.concatenate(terms)) for each in zip(*parts)]


def _divergence(
    subject: Subject, calibration: Calibration, batch: object, about: tuple[torch.Tensor, torch.Tensor],
    formats: Mapping[str, OperandFormat],
) -> Floats:  # fmt: skip
    """By sequence; about: FP32's output, and the terms that count."""
    output = _output(subject, calibration, batch, formats)
    if not output.isfinite().all():
        return np.full(len(output), np.inf)
    reference, terms = about
    nats = calibration.family.divergence(reference, output)
    return by_sequence(torch.where(terms > 0, nats, 0.0))


def _output(
    subject: Subject, calibration: Calibration, batch: object, formats: Mapping[str, OperandFormat]
) -> torch.Tensor:
    def handle(module: str, call: ProductCall, run: Run) -> torch.Tensor:
        unit = subject.units.of(module, call).name
        format = formats.get(unit)
        return run() if format is None else mixed(call, format.of(unit))

    with WatchedProducts(calibration.model, handle).watching(), torch.no_grad():
        return calibration.output(batch)
