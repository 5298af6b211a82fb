"""Steps that a loss scaler skipped, and what else shows how it is used: in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from halfscope.torch.steps.optimizer_turns import OptimizerTurns

_LONG = 5  # skipped steps in a row that are no start-up, once a step was taken
_ALIKE = 1.01
_HUGE = 2.0**40  # beyond what rules start with: gradients that do not hold the scale back
_CEILING = 'halfscope.torch.GradScaler("apex_amp") is torch.amp\'s rule with a ceiling of 2^24'


@dataclass
class ScalerSteps:
    """Counts of a training with a scaler, which is told of every step."""

    steps: int = 0
    skipped: list[tuple[int, float]] = field(default_factory=list)  # step and its scale
    ahead: int = 0  # skipped steps in which the learning rate moved on
    norms: list[tuple[float, float]] = field(default_factory=list)  # norm of the unscaled gradients, and the scale
    scale: float = 1.0  # scale of the latest step that was taken
    optimizers: OptimizerTurns = field(default_factory=OptimizerTurns)
    _rate_when_skipped: float | None = None

    def see_gradients(self, gradients: Iterable[torch.Tensor], scale: float) -> None:
        """Gradients as the optimizer gets them, without the loss scale."""
        norms = [
            torch.linalg.vector_norm(gradient, dtype=torch.float64)  # squares of 1e-30 are 0 in FP32
            for gradient in gradients
            if _is_plain(gradient)
        ]
        if norms:
            self.norms.append((float(torch.stack(norms).norm()), scale))

    def end(self, stepped: bool, scale: float, rate: float) -> None:
        """rate: the optimizer's learning rate in the step."""
        self.steps += 1
        self.optimizers.end()
        if self._rate_when_skipped is not None and rate != self._rate_when_skipped:
            self.ahead += 1
        self._rate_when_skipped = None if stepped else rate
        if stepped:
            self.scale = scale
        else:
            self.skipped.append((self.steps, scale))

    @property
    def is_incurable(self) -> bool:
        """Whether the scale does not help: steps are skipped to the end, or in a long row down to a scale of 1."""
        if not self.skipped or self.skipped[-1][0] != self.steps:
            return False
        return self._last_row() == self.steps or self._last_row() >= _LONG or self.skipped[-1][1] <= 1

    def _last_row(self) -> int:
        row = 0
        for step, _ in reversed(self.skipped):
            if step != self.steps - row:
                break
            row += 1
        return row

    def words(self) -> list[str]:
        skips = self._without_end() or self._skips()
        return [*skips, *self.optimizers.words(), *self._schedule(), *self._gradients()]

    def _without_end(self) -> list[str]:
        """Sentences on a scale that has become infinite, or will."""
        infinite = next((step for step, scale in self.skipped if scale == math.inf), None)
        if infinite is not None:
            return [
                f"The scale is infinite from step {infinite} on, and stays so: inf / 2 is inf. It grew without a limit "
                f"while nothing overflowed: set it back to 65536; {_CEILING}."
            ]
        if self.scale < _HUGE or any(norm == 0 for norm, _ in self.norms):
            return []
        return [
            f"The scale has grown to 2^{math.log2(self.scale):.0f}: gradients are so small that nothing limits it, and "
            f"a scaler without a limit ends at infinity, where it stays; {_CEILING}.",
            *self._skips(),
        ]

    def _skips(self) -> list[str]:
        if not self.skipped:
            return []
        first = 0
        while first < len(self.skipped) and self.skipped[first][0] == first + 1:
            first += 1
        if self.is_incurable:
            scales = f"S from {self.skipped[-self._last_row()][1]:g} down to {self.skipped[-1][1]:g}"
            every = "all" if len(self.skipped) == self.steps else "the last"
            small = self.skipped[-1][1] <= 1
            cause = "no loss scale helps" if small else "the scale has not come down far enough, or none helps"
            return [
                f"The scaler skipped {every} {_number(self._last_row())}, {scales}: {cause}. Find the operation: "
                "print(halfscope.torch.diagnose(model, loss))."
            ]
        sentences = []
        if first:
            sentences.append(
                f"The scaler skipped the first {_number(first)}, S from {self.skipped[0][1]:g} down to "
                f"{self.skipped[first - 1][1]:g}: the start-up of a dynamic scale, no fault."
            )
        later = self.skipped[first:]
        if later:
            shown = ", ".join(str(step) for step, _ in later[:4]) + (" ..." if len(later) > 4 else "")
            sentences.append(
                f"Later it skipped {_number(len(later))} (step {shown}), at S = {later[0][1]:g}: expected where "
                "the scale has just grown."
            )
        return sentences

    def _schedule(self) -> list[str]:
        if not self.ahead:
            return []
        return [
            f"The learning rate moved on in {self.ahead} skipped step{'s' * (self.ahead != 1)}: the schedule is "
            f"{self.ahead} ahead of the weights. Step it only where the scale did not fall: before = "
            "scaler.get_scale(); scaler.update(); if scaler.get_scale() >= before: scheduler.step()."
        ]

    def _gradients(self) -> list[str]:
        sentences = []
        zero = sum(norm == 0 for norm, _ in self.norms)
        if zero:
            sentences.append(
                f"All gradients were 0 in {zero} of {_number(len(self.norms))}: nothing overflows, and nothing "
                "limits the growth of the scale; the weights do not learn in such a step. Look for a loss that is cut "
                f"off from the weights (detach, no_grad, a mask, dead units); {_CEILING}."
            )
        scaled = [norm * scale for norm, scale in self.norms if norm and scale != 1]
        if len(scaled) >= 3 and max(scaled) < _ALIKE * min(scaled) and self._norms_fall_with_scale():
            sentences.append(
                f"The norm of all gradients is {scaled[0]:.3g} / S in every step: they were clipped before they were "
                "unscaled. Call scaler.unscale_(optimizer) in front of clip_grad_norm_."
            )
        return sentences

    def _norms_fall_with_scale(self) -> bool:
        """One norm at one scale may as well be right: it is another fault where it is that small."""
        return len({scale for _, scale in self.norms}) > 1 or max(norm for norm, _ in self.norms) < 0.01


def _is_plain(gradient: torch.Tensor) -> bool:
    return gradient.layout is torch.strided and not hasattr(gradient, "to_local")


def _number(steps: int) -> str:
    return f"{steps} step{'s' * (steps != 1)}"
