"""Counts of an emulated training by role and tensor: of the casts as they happened, and of lost updates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from halfscope import Histogram, UpdateCounters
from halfscope._core import describe_quantizer
from halfscope.torch.counts.histograms import Observations
from halfscope.torch.device.arithmetic import Host
from halfscope.torch.events.source import Site, current_site

REDUCED = "reduce-scatter, summed"  # name of the gradients that fully_shard has added up
_SHARD_ROLES = ("master_weight", "optimizer_state", "update_ratio")


class CastCount(NamedTuple):
    """Counters of one cast."""

    counts: Any  # _core.CastCounts
    histogram: Histogram | None  # histogram of the exact numbers, on watched steps
    scale: float
    is_inherited: bool = False  # its infinities are those of the operands, such as an attention mask's


@dataclass
class CastTotals:
    """Counters of all casts of a tensor: non-zero elements, by the outcome of their cast."""

    quantizer: str
    elements: int = 0
    zeros: int = 0
    flushed: int = 0
    subnormal: int = 0
    overflow: int = 0
    nonfinite: int = 0
    max_abs: float = 0.0

    def add(self, counts: Any) -> None:
        self.elements += counts.elements
        for name in ("zeros", "flushed", "subnormal", "overflow", "nonfinite"):
            setattr(self, name, getattr(self, name) + getattr(counts, name))
        self.max_abs = max(self.max_abs, counts.max_abs)

    @property
    def nonzero(self) -> int:
        """Elements that were finite and not zero."""
        return self.elements - self.zeros - self.nonfinite

    @property
    def flushed_fraction(self) -> float:
        """Share of the non-zero elements that became zero."""
        return self.flushed / self.nonzero if self.nonzero else 0.0


class FirstOverflow(NamedTuple):
    step: int  # counted from 1
    tensor: str
    role: str
    overflow: int  # finite elements that became infinite
    nonfinite: int  # elements that were infinite or NaN before
    elements: int
    site: Site | None = None  # the line of the source, in a forward pass
    scale: float = 1.0  # the loss scale of the step


@dataclass
class ShardCounts:
    """Counters of this process's shards in the step under way."""

    is_first: bool  # first of the ranks: it counts the unsharded updates, which all ranks make
    sharded: frozenset[str]  # names of the parameters
    casts: dict[tuple[str, str], CastTotals] = field(default_factory=dict)
    updates: dict[str, UpdateCounters] = field(default_factory=dict)


def is_of_shards(role: str, tensor: str) -> bool:
    """Whether each process of a sharded training counts elements of its own, of the same tensor."""
    return role in _SHARD_ROLES or tensor == REDUCED


class Book:
    """Totals of all steps; histograms of the watched ones."""

    def __init__(self, every: int, format: str) -> None:
        """format: of the histograms; casts to other formats have none."""
        self._every, self.format = every, format
        self.step = 1  # the one under way
        self.totals: dict[tuple[str, str], CastTotals] = {}
        self.evaluated: dict[tuple[str, str], CastTotals] = {}  # passes without gradients, apart from the training's
        self._fault: FirstOverflow | None = None
        self.harmless: FirstOverflow | None = None  # later numbers are as in FP32
        self.hider = ""  # the operation that made them so
        self._scaled: FirstOverflow | None = None  # a gradient's, at a loss scale
        self.scale_helped = False  # a step was taken after it
        self.nonzero_updates = self.lost_updates = 0
        self.nonzero_decays = self.lost_decays = 0  # multiplications of weights by a factor below 1
        self.scale = 1.0  # the loss scale of the step under way
        self.enabled = True  # not in an evaluation
        self._is_recomputing: Callable[[], bool] = lambda: False  # a recomputed tensor is counted already
        self.seen: Observations | None = None
        self.shards: ShardCounts | None = None  # for a model that several ranks share
        self._formats: dict[str, str] = {}

    def follow(self, is_recomputing: Callable[[], bool], shards: ShardCounts | None) -> None:
        """A training begins to write into it; shards: where several ranks share the model."""
        self._is_recomputing, self.shards = is_recomputing, shards

    def begin_forward(self) -> None:
        """A forward pass begins, which is an evaluation where nothing records gradients."""
        self.enabled = torch.is_grad_enabled()

    def begin_backward(self) -> None:
        self.enabled = True

    @contextmanager
    def for_all_ranks(self) -> Iterator[None]:
        """Counts that are entered inside are all ranks'; those of this rank's shards begin anew behind it."""
        shards, self.shards = self.shards, None
        try:
            yield
        finally:
            self.shards = None if shards is None else ShardCounts(shards.is_first, shards.sharded)

    def seeks_overflow(self, counted: CastCount | None) -> bool:
        """Whether the first number that is not finite may be among these; an overflow of the cast itself is."""
        return self._fault is None and counted is not None and counted.counts.nonfinite > 0

    @property
    def first_overflow(self) -> FirstOverflow | None:
        """The first in a forward pass, in a gradient without a scale, or in one that no smaller scale kept finite."""
        if self._fault is not None and self._scaled is not None and not self.scale_helped:
            return min(self._fault, self._scaled, key=lambda found: found.step)
        return self._fault or (None if self.scale_helped else self._scaled)

    def end_step(self, stepped: bool) -> None:
        """stepped: whether the scaler let the optimizer step."""
        self.scale_helped = self.scale_helped or (
            stepped and self._scaled is not None and self._scaled.step < self.step
        )

    def begin_step(self, step: int, scale: float) -> None:
        self.step, self.scale = step, scale
        self.seen = Observations(self.format, is_emulated=True) if self.watches() else None

    def watches(self) -> bool:
        """Whether histograms are taken in the step under way: the first and every `every`-th."""
        return self.step == 1 or self.step % self._every == 0

    def counts_copies(self, role: str) -> bool:
        """Whether whole tensors are counted here: those of an update all ranks of a sharded training have alike."""
        return self.shards is None or self.shards.is_first or role not in _SHARD_ROLES

    def counts(self) -> bool:
        """Whether a cast is counted now."""
        return self.enabled and not self._is_recomputing()

    def casts(self) -> dict[tuple[str, str], CastTotals]:
        """The training's; those of evaluations where nothing was trained."""
        return self.totals or self.evaluated

    def count(self, near: torch.Tensor, device: Host, quantizer: str, round: Callable[[str], Any]) -> CastCount | None:
        """Rounds by round(detail), having looked at the numbers before as closely as this step is to be."""
        if self._is_recomputing():
            round("none")
            return None
        histogram = None
        if self.enabled and self.seen is not None and self._format_of(quantizer) == self.format:
            histogram = device.histogram(near, self.format)
        return CastCount(round("counters"), histogram, self.scale)

    def _format_of(self, quantizer: str) -> str:
        if quantizer not in self._formats:
            self._formats[quantizer] = str(describe_quantizer(quantizer)["format"])
        return self._formats[quantizer]

    def add(self, role: str, tensor: str, quantizer: str, counted: CastCount | None) -> FirstOverflow | None:
        """Enters a cast; returns its overflow where that is the first one, or the first at a loss scale."""
        if counted is None:
            return None
        key, counts = (role, tensor), counted.counts
        if not self.enabled:
            self.evaluated.setdefault(key, CastTotals(quantizer)).add(counts)
            return self._note_overflow(role, tensor, counted)
        self._totals_of(key).setdefault(key, CastTotals(quantizer)).add(counts)
        first = self._note_overflow(role, tensor, counted)
        if self.seen is not None and counted.histogram is not None:
            scale = counted.scale if role.endswith("gradient") else 1.0
            self.seen.add(role, tensor, counted.histogram, scale)
            self.seen.formats[role, tensor] = "fp32"
        return first

    @property
    def seeks_fault(self) -> bool:
        """Whether no overflow is known that is none of the scaler's."""
        return self._fault is None

    def excuse(self, found: FirstOverflow, hider: str) -> None:
        """An overflow did no harm: the first one is still to come; hider: the operation behind it."""
        if self._fault is found:
            self._fault = None
            if self.harmless is None:
                self.harmless, self.hider = found, hider

    def _note_overflow(self, role: str, tensor: str, counted: CastCount) -> FirstOverflow | None:
        counts = counted.counts
        nonfinite = 0 if counted.is_inherited else counts.nonfinite
        if not counts.overflow + nonfinite:
            return None
        is_known = self._fault is not None and (self._scaled is not None or not role.endswith("gradient"))
        if is_known:
            return None
        site = current_site() if role in ("activation", "weight") else None
        found = FirstOverflow(
            self.step, tensor, role, counts.overflow, counts.nonfinite, counts.elements, site, self.scale
        )
        if role.endswith("gradient") and self.scale > 1:
            self._scaled = self._scaled or found
        else:
            self._fault = self._fault or found
        return found if found is self._scaled or found is self._fault else None

    def _totals_of(self, key: tuple[str, str]) -> dict[tuple[str, str], CastTotals]:
        """Totals by key; a shard's wait for the end of the step, when the ranks add them up."""
        return self.totals if self.shards is None or not is_of_shards(*key) else self.shards.casts

    def add_decay(self, counters: UpdateCounters) -> None:
        self.nonzero_decays += counters.nonzero
        self.lost_decays += counters.lost

    def add_update(self, parameter: str, counters: UpdateCounters) -> None:
        if self.shards is not None:
            known = self.shards.updates.get(parameter)
            self.shards.updates[parameter] = counters if known is None else known + counters
            return
        self.nonzero_updates += counters.nonzero
        self.lost_updates += counters.lost
        if self.seen is not None:
            self.seen.updates[parameter] = counters
