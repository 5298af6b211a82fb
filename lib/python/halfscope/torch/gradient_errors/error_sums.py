"""Sums of squares of a training's gradient errors, by batch and weight, beside the gradients themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from halfscope.torch.sensitivity.unit_scores import intervals

Floats = NDArray[np.float64]
Gradients = dict[str, torch.Tensor]
UNKNOWN = (float("nan"), float("nan"))


@dataclass(frozen=True)
class GradientError:
    """Error of a step's gradients over what gradients of batches differ by, both as sums of squares over all weights.

    beside_factor: without the part that multiplies a weight's gradient by one number in all batches, which Adam does
        not see. Infinite where a gradient is not finite.
    """

    whole: float
    beside_factor: float
    whole_interval: tuple[float, float] = UNKNOWN  # 95 % over batches; NaN for fewer than 8
    beside_interval: tuple[float, float] = UNKNOWN


def inner(one: Gradients, other: Gradients) -> list[float]:
    """Inner products by weight."""
    return [float((one[name] * other[name]).sum()) for name in one]


def difference(one: Gradients, other: Gradients) -> Gradients:
    """By weight."""
    return {name: one[name] - other[name] for name in one}


@dataclass(frozen=True)
class ErrorSums:
    """Sums over the elements of each weight: (batches, weights)."""

    squares: Floats  # error squared
    along: Floats  # error times gradient

    def error(self, gradients: Floats, noise: Floats, seed: int) -> GradientError:
        """gradients: sums of squares (batches, weights); noise: squared distance from the mean gradient (batches)."""
        if not (np.isfinite(self.squares).all() and np.isfinite(self.along).all()):
            return GradientError(float("inf"), float("inf"))
        parts = np.stack([self.squares.sum(1), self._beside_factor(gradients)], 1)
        whole, beside = (parts.sum(0) / noise.sum()).tolist()
        low, high = (each.tolist() for each in intervals(parts, noise, seed))
        return GradientError(whole, beside, (low[0], high[0]), (low[1], high[1]))

    def _beside_factor(self, gradients: Floats) -> Floats:
        """By batch, what the best factor of each weight's gradient leaves: |d - c g|^2."""
        total = gradients.sum(0)
        factors = np.divide(self.along.sum(0), total, out=np.zeros_like(total), where=total > 0)
        left = self.squares - 2 * factors * self.along + factors**2 * gradients
        found: Floats = np.maximum(left, 0).sum(1)
        return found
