"""The score of ModelOpt's AutoQuantize: squares of a gradient times an error, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from halfscope.torch import Sensitivity
from halfscope.torch.sensitivity.gradient_pass import GradientPass
from halfscope.torch.sensitivity.product_calls import Exact, ProductCall
from halfscope.torch.sensitivity.units import Unit

Labelled = Callable[[Any, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""For a batch and the model's output: logits (labels, classes), and the true labels."""


def squared_errors(found: Sensitivity, labelled: Labelled) -> dict[tuple[str, str], float]:
    """Sum over elements of g^2 dY^2, true labels, over twice the terms: by group and format, units added up."""
    subject = found._subject
    sums = {(group, format): 0.0 for group in subject.groups for format in subject.formats}

    def look(unit: Unit, number: int, call: ProductCall, gradient: torch.Tensor) -> None:
        del number
        exact, group = call.product(Exact()), subject.group_of(unit.name)
        for name, format in subject.formats.items():
            sums[group, name] += float(((call.product(format) - exact) * gradient).double().square().sum())

    passing, terms = GradientPass(subject.calibration, subject.units, {}, look), 0
    with subject.calibration.evaluating():
        for batch in subject.calibration.batches:
            logits, labels = labelled(batch, passing.output(batch))
            functional.cross_entropy(logits, labels, reduction="sum").backward()
            terms += len(labels)
    return {key: value / (2 * terms) for key, value in sums.items()}
