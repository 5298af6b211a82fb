"""Observations of one training step: histograms by role and tensor, and lost updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch

from halfscope import Histogram, UpdateCounters
from halfscope._core import count_floats
from halfscope.results.loss_scales import GRADIENTS
from halfscope.torch.counts.counter import Canvas
from halfscope.torch.counts.histogram_sums import power_of_two, together
from halfscope.torch.counts.records import gradient_record, histogram_records, tensor_records, update_records
from halfscope.torch.device.waiting import Waiting, counting_of, region_of, update_counters
from halfscope.torch.tensors.elements import Unreadable, elements_of, format_of

# Weight gradients as the optimizer got them, if they differ from the backward pass's: clipped ones.
AT_OPTIMIZER = "optimizer_gradient"
# State that the optimizer keeps per parameter, such as Adam's m and v; counted on request.
OPTIMIZER_STATE = "optimizer_state"


@dataclass(frozen=True)
class StalledWeights:
    """Weights of 16 bits over a step: how many have a gradient other than zero, and how many of these stayed."""

    format: str
    with_gradient: int
    unmoved: int


@dataclass
class Observations:
    """One step's; a tensor that is seen several times (a shared layer, accumulated gradients) is counted together."""

    format: str = "fp16"  # that the counts are for
    is_emulated: bool = False  # the tensors were rounded to it after they were counted
    histograms: dict[tuple[str, str], Histogram] = field(default_factory=dict)  # by role and tensor
    scales: dict[tuple[str, str], float] = field(default_factory=dict)  # the loss scale that the numbers carry
    formats: dict[tuple[str, str], str] = field(default_factory=dict)  # formats in which the tensors came
    updates: dict[str, UpdateCounters] = field(default_factory=dict)  # by parameter
    stalled: dict[str, StalledWeights] = field(default_factory=dict)  # by parameter of 16 bits
    unreadable: dict[str, str] = field(default_factory=dict)  # by tensor: why it was not counted
    _waiting: Waiting = field(default_factory=Waiting)
    _rounds: Counter = field(default_factory=Counter)  # how often a tensor was counted anew

    def count(self, role: str, tensor: str, given: torch.Tensor, scale: float = 1.0) -> None:
        region = region_of(given)
        if region is not None:
            self.formats[role, tensor] = format_of(given)
            self.add(role, tensor, count_floats([region], self.format)[0], scale)
            return
        elements = self._readable(role, tensor, given)
        if elements is not None:
            self._add_counted(role, tensor, counting_of(elements).histogram(elements, self.format), scale)

    def recount(self, role: str, tensors: dict[str, torch.Tensor], scale: float) -> None:
        """Counts `tensors` in place of what was counted of them before in this role."""
        for name in tensors:
            self.histograms.pop((role, name), None)
            self._rounds[role, name] += 1
        self.count_all(role, tensors, scale)

    def count_all(self, role: str, tensors: dict[str, torch.Tensor], scale: float) -> None:
        regions = {name: region_of(tensor) for name, tensor in tensors.items()}
        plain = {name: region for name, region in regions.items() if region is not None}
        for name, found in zip(plain, count_floats(list(plain.values()), self.format)):
            self.formats[role, name] = format_of(tensors[name])
            self.add(role, name, found, scale)
        for name, tensor in tensors.items():
            if name not in plain:
                self.count(role, name, tensor, scale)

    def _readable(self, role: str, tensor: str, given: torch.Tensor) -> torch.Tensor | None:
        """The elements of `given`, whose format is noted; None where there are none in reach, which is noted too."""
        try:
            elements = elements_of(given)
        except Unreadable as reason:
            self.unreadable[tensor] = str(reason)
            return None
        self.formats[role, tensor] = format_of(given)
        return elements

    def count_update(self, parameter: str, weights: torch.Tensor, update: torch.Tensor) -> None:
        """Which of the updates the format would lose, and how large they are beside the weights."""
        found = counting_of(weights).updates(weights, update, self.format)
        if isinstance(found, torch.Tensor):
            self._waiting.add(found, partial(self._add_update, parameter, weights.numel()))
        else:
            self.updates[parameter] = found
        self.count_ratio(parameter, weights, update)

    def count_ratio(self, parameter: str, weights: torch.Tensor, update: torch.Tensor) -> None:
        """How large the updates are beside the weights."""
        self._add_counted("update_ratio", parameter, counting_of(weights).ratios(weights, update, self.format), 1.0)

    def count_stalled(self, parameter: str, format: str, stays: torch.Tensor, gradient: torch.Tensor) -> None:
        """stays: by element whether the weight stayed; `gradient` is the one that the optimizer had."""
        moving = gradient != 0
        numbers = torch.stack([moving.sum(), (moving & stays).sum()])
        self._waiting.add(
            numbers, lambda found: self.stalled.update({parameter: StalledWeights(format, *map(int, found))})
        )

    def finish(self) -> None:
        """Fetches what was counted on devices: until then it is not among the histograms and updates.

        Weight gradients at the optimizer stay only where something changed them after the backward pass.
        """
        self._waiting.finish()
        for role, tensor in list(self.histograms):
            if role == AT_OPTIMIZER and not self._changed(tensor):
                del self.histograms[role, tensor]

    def _changed(self, parameter: str) -> bool:
        before, after = (
            self._without_scale(("weight_gradient", parameter)),
            self._without_scale((AT_OPTIMIZER, parameter)),
        )
        scale = self.scales["weight_gradient", parameter]
        if power_of_two(scale) == scale:
            return before != after
        largest = self.histograms["weight_gradient", parameter].max_abs / scale
        return abs(after.max_abs - largest) > 1e-5 * largest  # binades cannot be shifted by a fraction

    def _add_counted(self, role: str, tensor: str, found: Histogram | torch.Tensor, scale: float) -> None:
        if isinstance(found, torch.Tensor):
            round_ = self._rounds[role, tensor]
            self._waiting.add(found, lambda bins: self._add_late(role, tensor, bins, (scale, round_)))
        else:
            self.add(role, tensor, found, scale)

    def _add_late(self, role: str, tensor: str, bins: np.ndarray, about: tuple[float, int]) -> None:
        scale, round_ = about
        if round_ == self._rounds[role, tensor]:
            self.add(role, tensor, Histogram.from_bins(bins, format=self.format), scale)

    def _add_update(self, parameter: str, elements: int, numbers: np.ndarray) -> None:
        self.updates[parameter] = update_counters(numbers, elements)

    def add(self, role: str, tensor: str, histogram: Histogram, scale: float = 1.0) -> None:
        key = (role, tensor)
        known = self.histograms.get(key)
        if known is None:
            self.histograms[key] = histogram
            self.scales[key] = scale
        else:
            known.merge(histogram)

    def unscaled(self, role: str) -> dict[str, Histogram]:
        """Histograms by tensor, without the loss scale, rounded to a power of two. Not to be changed."""
        return {tensor: self._without_scale((kind, tensor)) for kind, tensor in self.histograms if kind == role}

    def all_unscaled(self) -> Iterator[tuple[tuple[str, str], Histogram]]:
        """The same by role and tensor."""
        for key in self.histograms:
            yield key, self._without_scale(key)

    def _without_scale(self, key: tuple[str, str]) -> Histogram:
        scale, found = self.scales[key], self.histograms[key]
        return found if scale == 1 else found.scaled(power_of_two(1 / scale))

    def gradients(self, scale: float) -> dict:
        """All weight gradients, for a replay of loss scalers."""
        return gradient_record(self, scale)

    def line(self) -> dict:
        """Counts of a line of metrics.jsonl."""
        return {"tensors": tensor_records(self), "updates": update_records(self), "reductions": []}

    def histogram_lines(self, step: int) -> list[dict]:
        """Lines of histograms.jsonl."""
        return histogram_records(self, step)

    def draw(self, board: Canvas, step: int) -> None:
        """Histograms of all tensors, and shares of the gradients that the format flushes."""
        for (role, tensor), histogram in self.histograms.items():
            if histogram.nonzero:
                board.histogram(f"log2 {role}/{tensor}", histogram, step)
        for role in GRADIENTS:
            share = together(self.unscaled(role).values(), self.format).what_if(1.0).flushed_fraction
            by = "" if self.format == "fp16" else f"by {self.format} "
            board.scalar(f"flushed {by}without loss scale/{role}", share, step)
