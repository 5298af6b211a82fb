"""Gradients of a training step on several batches, in FP32 and with some products of a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from halfscope.torch.gradient_errors.error_sums import ErrorSums, Floats, GradientError, Gradients, difference, inner
from halfscope.torch.gradient_errors.policy_products import PolicyProducts
from halfscope.torch.steps.weight_gradients import checked_loss, gradients_within, kept

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]


@dataclass(frozen=True)
class Step:
    """A model with batches and the loss of one; each pass has the same random numbers, and changes nothing."""

    model: torch.nn.Module
    loss: Loss
    batches: tuple[Any, ...]

    def gradients(self, batch: Any, within: AbstractContextManager) -> Gradients:
        """By name of each trained weight, in float64; within: context of the pass."""
        with kept(self.model):
            found = gradients_within(within, self.model, lambda: checked_loss(self.loss(self.model, batch)), 1.0)
        trained = ((name, weight) for name, weight in self.model.named_parameters() if weight.requires_grad)
        zeros = partial(torch.zeros_like, dtype=torch.float64)
        return {name: found[name] if name in found else zeros(weight) for name, weight in trained}

    def fp32_gradients(self, batch: Any) -> Gradients:
        """Raises ValueError for a gradient that is not finite."""
        found = self.gradients(batch, nullcontext())
        name = next((name for name, gradient in found.items() if not gradient.isfinite().all()), None)
        if name is not None:
            raise ValueError(
                f"gradient_errors: the gradient of '{name}' is not finite in FP32; diagnose(model, loss) names the line"
            )
        return found


class StepErrors:
    """Errors of a step's gradients with products in a policy's formats, over the noise of batches."""

    def __init__(self, step: Step, products: PolicyProducts, seed: int) -> None:
        """Raises ValueError where the gradients of batches do not differ."""
        self._step, self._products, self._seed = step, products, seed
        mean = self._mean()
        rows = [self._beside(batch, mean) for batch in step.batches]
        self._squares: Floats = np.array([squares for squares, _ in rows])
        self._noise: Floats = np.array([distance for _, distance in rows]) * len(rows) / (len(rows) - 1)
        if not self._noise.sum() > 0:
            raise ValueError("gradient_errors: all batches have the same gradient; give batches as the training draws")

    def _mean(self) -> Gradients:
        first, *others = self._step.batches
        mean = self._step.fp32_gradients(first)
        for batch in others:
            for name, gradient in self._step.fp32_gradients(batch).items():
                mean[name] += gradient
        return {name: total / len(self._step.batches) for name, total in mean.items()}

    def _beside(self, batch: Any, mean: Gradients) -> tuple[list[float], float]:
        """Squares of a batch's gradient by weight, and its squared distance from the mean."""
        own = self._step.fp32_gradients(batch)
        away = difference(own, mean)
        return inner(own, own), sum(inner(away, away))

    def leaving(self, choices: Sequence[Iterable[str]]) -> list[GradientError]:
        """Errors for each choice of products that stay FP32: one pass of each batch for each, and one in FP32."""
        return self._errors([partial(self._products.emulation, tuple(left)) for left in choices])

    def typed(self, left: Iterable[str]) -> GradientError:
        """Error of the whole policy, with products in the formats of their roles."""
        return self._errors([partial(self._products.typed, tuple(left))])[0]

    def _errors(self, contexts: Sequence[Callable[[int], AbstractContextManager]]) -> list[GradientError]:
        """contexts: of a pass, for a seed."""
        rows = [self._rows(index, batch, contexts) for index, batch in enumerate(self._step.batches)]
        sums = (ErrorSums(*np.array(each).swapaxes(0, 1)) for each in zip(*rows))
        return [each.error(self._squares, self._noise, self._seed) for each in sums]

    def _rows(
        self, index: int, batch: Any, contexts: Sequence[Callable[[int], AbstractContextManager]]
    ) -> list[tuple[list[float], list[float]]]:
        """For each context the squares of a batch's error by weight, and error times gradient."""
        exact, rows = self._step.fp32_gradients(batch), []
        for context in contexts:
            found = self._step.gradients(batch, context(self._seed * len(self._step.batches) + index))
            error = difference(found, exact)
            rows.append((inner(error, error), inner(error, exact)))
        return rows
