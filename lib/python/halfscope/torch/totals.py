"""Everything that a watch has counted: histograms by role and tensor, lost updates, formats."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from halfscope import Histogram, ScaleAdvice, advise_scale
from halfscope.results.loss_scales import GRADIENTS
from halfscope.torch.observations import AT_OPTIMIZER, Observations, Stalled

ROLES = ("activation", *GRADIENTS, AT_OPTIMIZER, "update_ratio")


class Totals:
    """All watched steps together, without the loss scale."""

    def __init__(self) -> None:
        self.of: dict[str, dict[str, Histogram]] = defaultdict(dict)  # by role and tensor; not to be changed
        self.steps = self.nonzero_updates = self.lost_updates = 0
        self.changed_steps = 0  # in which weight gradients were changed before the optimizer got them
        self.stalled: dict[str, Stalled] = {}  # by format
        self.unreadable: dict[str, str] = {}  # by tensor
        self._formats: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._hardest: dict[tuple[str, str], Histogram] = {}  # of a step, by role and tensor
        self._asked: dict[tuple[str, str], int] = {}  # log2 of the smallest scale that fits it

    def add(self, seen: Observations) -> None:
        self.steps += 1
        self.changed_steps += any(role == AT_OPTIMIZER for role, _ in seen.histograms)
        for (role, tensor), histogram in seen.all_unscaled():
            known = self.of[role]
            if tensor in known:
                known[tensor].merge(histogram)
            else:
                known[tensor] = histogram.scaled(1.0)
            if role in GRADIENTS:
                self._compare((role, tensor), histogram)
        for key, format in seen.formats.items():
            self._formats[key].add(format)
        for counters in seen.updates.values():
            self.nonzero_updates += counters.nonzero
            self.lost_updates += counters.lost
        for found in seen.stalled.values():
            known_stalled = self.stalled.get(found.format, Stalled(found.format, 0, 0))
            self.stalled[found.format] = Stalled(
                found.format, known_stalled.with_gradient + found.with_gradient, known_stalled.unmoved + found.unmoved
            )
        self.unreadable |= seen.unreadable

    def _compare(self, key: tuple[str, str], histogram: Histogram) -> None:
        """Keeps the step that asks for the largest scale: gradients shrink while a network trains."""
        window = histogram.window()
        if window and window[0] > self._asked.get(key, window[0] - 1):
            self._asked[key], self._hardest[key] = window[0], histogram.scaled(1.0)

    def histograms(self, role: str) -> dict[str, Histogram]:
        """By tensor, copies."""
        return {tensor: found.scaled(1.0) for tensor, found in self.of[role].items()}

    def gradients(self) -> dict[tuple[str, str], Histogram]:
        """Of layers' outputs and of weights in the backward pass, by role and tensor."""
        return {(role, name): found for role in GRADIENTS for name, found in self.of[role].items()}

    def advise_scale(self, **options: Any) -> ScaleAdvice:
        """`halfscope.advise_scale` of the gradients of layers and weights: the hardest step beside all together."""
        steps = {
            name: [self._hardest[key], found] if (key := (role, name)) in self._hardest else found
            for (role, name), found in self.gradients().items()
        }
        return advise_scale(steps, **options)

    def was_fp16(self, role: str, tensor: str) -> bool:
        """Whether the gradients came in FP16, or were computed from such: those of a layer's weights from its own."""
        if "fp16" in self._formats[role, tensor]:
            return True
        layer = tensor.rpartition(".")[0]
        return role == "weight_gradient" and "fp16" in self._formats["activation_gradient", layer]


def together(histograms: Any) -> Histogram:
    """The counts of several as one histogram."""
    total = Histogram()
    for found in histograms:
        total.merge(found)
    return total
