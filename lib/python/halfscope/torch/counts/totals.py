"""Everything that a watch has counted: histograms by role and tensor, lost updates, formats of the tensors."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from halfscope import Explorer, Histogram, ScaleAdvice, advise_scale
from halfscope._core import ExplorerData
from halfscope.formats import describe
from halfscope.results.loss_scales import GRADIENTS, gradient_name
from halfscope.torch.counts.histogram_sums import together
from halfscope.torch.counts.histograms import AT_OPTIMIZER, OPTIMIZER_STATE, Observations, StalledWeights

ROLES = ("activation", *GRADIENTS, AT_OPTIMIZER, "update_ratio", OPTIMIZER_STATE)
NO_SIZE = 2.0**-16  # below this part of its layer's largest gradient FP32 has no correct digits of it left
_NARROW = ("fp16", "bf16")  # formats that PyTorch computes in


class Totals:
    """All watched steps together, without the loss scale."""

    def __init__(self, format: str) -> None:
        self.format = format  # that the counts are for
        self._flushed_before = {
            narrow for narrow in _NARROW if describe(format)["smallest"] <= describe(narrow)["smallest"]
        }
        self.of: dict[str, dict[str, Histogram]] = defaultdict(dict)  # by role and tensor; not to be changed
        self.steps = self.nonzero_updates = self.lost_updates = 0
        self.changed_steps = 0  # in which weight gradients were changed before the optimizer got them
        self.stalled: dict[str, StalledWeights] = {}  # by format
        self.unreadable: dict[str, str] = {}  # by tensor
        self.of_no_size: set[str] = set()  # weight gradients that a comparison with FP32 has found to be round-off
        self._formats: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._hardest: dict[tuple[str, str], Histogram] = {}  # hardest of a step, by role and tensor
        # Without steps that a loss scale has made infinite, where there is one; None where no other is there.
        self._judged: dict[tuple[str, str], Histogram | None] = {}
        self._asked: dict[tuple[str, str], int] = {}  # log2 of the smallest scale that fits it

    def add(self, seen: Observations) -> None:
        self.steps += 1
        self.changed_steps += any(role == AT_OPTIMIZER for role, _ in seen.histograms)
        for key, histogram in seen.all_unscaled():
            self._add(key, histogram, seen.scales[key])
        for key, format in seen.formats.items():
            self._formats[key].add(format)
        for counters in seen.updates.values():
            self.nonzero_updates += counters.nonzero
            self.lost_updates += counters.lost
        for weights in seen.stalled.values():
            known_stalled = self.stalled.get(weights.format, StalledWeights(weights.format, 0, 0))
            self.stalled[weights.format] = StalledWeights(
                weights.format,
                known_stalled.with_gradient + weights.with_gradient,
                known_stalled.unmoved + weights.unmoved,
            )
        self.unreadable |= seen.unreadable

    def _add(self, key: tuple[str, str], histogram: Histogram, scale: float) -> None:
        role, tensor = key
        of_role = self.of[role]
        known = of_role.get(tensor)
        if role in GRADIENTS:
            self._judge(key, histogram, scale)
        if known is None:
            of_role[tensor] = histogram.scaled(1.0)
        else:
            known.merge(histogram)
        if role in GRADIENTS:
            self._compare(key, histogram)

    def _compare(self, key: tuple[str, str], histogram: Histogram) -> None:
        """Keeps the step that asks for the largest scale: gradients shrink while a network trains."""
        window = histogram.window()
        if window and window[0] > self._asked.get(key, window[0] - 1):
            self._asked[key], self._hardest[key] = window[0], histogram.scaled(1.0)

    def _judge(self, key: tuple[str, str], histogram: Histogram, scale: float) -> None:
        """Looks at a step before it is added: infinities at a large scale say nothing of a small one.

        A loss scale is advised from all steps together, as long as none of them has to be left out.
        """
        if scale <= 1 and not self._judged:
            return
        judged = self._judged.get(key)
        if scale > 1 and histogram.infinities + histogram.nans:
            if key not in self._judged:
                known = self.of[key[0]].get(key[1])
                self._judged[key] = None if known is None else known.scaled(1.0)
        elif judged is not None:
            judged.merge(histogram)
        elif key in self._judged:
            self._judged[key] = histogram.scaled(1.0)

    def histograms(self, role: str) -> dict[str, Histogram]:
        """Copies of the histograms by tensor."""
        return {tensor: counts.scaled(1.0) for tensor, counts in self.of[role].items()}

    def gradients(self) -> dict[tuple[str, str], Histogram]:
        """Histograms of the gradients of layers' outputs and of weights, by role and tensor."""
        return {(role, name): counts for role in GRADIENTS for name, counts in self.of[role].items()}

    def _judged_gradients(self) -> dict[tuple[str, str], Histogram]:
        """The gradients that advice is on; infinite ones only where every watched step was.

        Left out are weight gradients that are zero but for round-off, such as that of a key's bias: the softmax takes a
        common term of its arguments out.
        """
        judged = {key: self._judged.get(key) or counts for key, counts in self.gradients().items()}
        largest: dict[str, float] = {}
        for (role, name), counts in judged.items():
            if role == "weight_gradient":
                layer = name.rpartition(".")[0]
                largest[layer] = max(largest.get(layer, 0.0), _norm(counts))
        return {
            (role, name): counts
            for (role, name), counts in judged.items()
            if role != "weight_gradient"
            or (name not in self.of_no_size and _norm(counts) >= NO_SIZE * largest[name.rpartition(".")[0]])
        }

    def advise_scale(self, **options: Any) -> ScaleAdvice:
        """`halfscope.advise_scale` of the gradients of layers and weights: the hardest step beside all together."""
        steps = {
            gradient_name(*key): [self._hardest[key], counts] if key in self._hardest else counts
            for key, counts in self._judged_gradients().items()
        }
        return advise_scale(steps, format=self.format, **options)

    def explore(self, title: str) -> Explorer:
        """The same gradients at any scale, all steps together."""
        data = ExplorerData(self.format)
        for (role, name), counts in self.gradients().items():
            data.add(gradient_name(role, name), role, 0, counts)
        return Explorer(data, self.advise_scale(), title)

    def flushed_before(self, role: str, tensor: str) -> str | None:
        """The format in which the tensor came, if it has flushed already whatever the watched format flushes.

        For a weight gradient, also the format of the output gradient from which it was computed.
        """
        formats = self._formats[role, tensor]
        if role == "weight_gradient":
            formats = formats | self._formats["activation_gradient", tensor.rpartition(".")[0]]
        return min(formats & self._flushed_before, default=None)

    def together(self, role: str) -> Histogram:
        """All tensors of a role as one histogram."""
        return together(self.of[role].values(), self.format)


def _norm(histogram: Histogram) -> float:
    """Norm of the finite elements, to a factor of 2: each counts as the lower end of its binade."""
    counts = histogram.binades()[:, 0].astype(float)
    exponents = np.arange(counts.size) - 149.0
    return float(np.sqrt((counts * 4.0**exponents).sum()))
