"""Inner products of output gradients and errors, by unit and format, summed by sequence and by token."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from halfscope.torch.sensitivity.units import Layout

Floats = NDArray[np.float64]


@dataclass
class GroupSamples:
    """Sums of one group by sequence, or by batch where rows are not a sequence's: (samples, formats)."""

    sequence: list[Floats] = field(default_factory=list)  # the inner product
    token: list[Floats] = field(default_factory=list)  # the sum of squares of those of the tokens
    terms: list[Floats] = field(default_factory=list)  # (samples): terms of the loss

    def add(self, rows: torch.Tensor, terms: Floats) -> None:
        """rows: (samples, tokens, formats)."""
        self.sequence.append(rows.sum(1).numpy())
        self.token.append(rows.square().sum(1).numpy())
        self.terms.append(terms)


def by_sequence(terms: torch.Tensor) -> Floats:
    """Sums of numbers of the loss's terms (sequences, ...), on the CPU."""
    found: Floats = terms.double().reshape(len(terms), -1).sum(1).cpu().numpy()
    return found


class Samples:
    """Rows of a batch's products, and the sums of all batches."""

    def __init__(
        self, groups: dict[str, tuple[str, ...]], layouts: dict[str, Layout], formats: tuple[str, ...]
    ) -> None:
        self._of = {unit: name for name, group in groups.items() for unit in group}
        self._layouts, self._formats = _common(groups, layouts), formats
        self._rows: dict[str, dict[tuple, torch.Tensor]] = defaultdict(dict)
        self.groups: dict[str, GroupSamples] = {}

    def add(self, unit: str, index: int, format: str, rows: torch.Tensor) -> None:
        """rows: inner products of one call, the `index`-th of its unit; those of a group's units are added."""
        known = self._rows[self._of[unit]]
        key = (index, rows.numel())
        if key not in known:
            known[key] = rows.new_zeros(rows.numel(), len(self._formats), dtype=torch.float64, device="cpu")
        known[key][:, self._formats.index(format)] += rows.detach().double().cpu()

    def end_batch(self, terms: Floats) -> None:
        """terms: of the loss, by sequence."""
        for name, calls in self._rows.items():
            layout = self._layouts[name]
            parts = [_by_sample(rows, layout, len(terms)) for rows in calls.values()]
            own = np.array([terms.sum()]) if layout is Layout.MIXED else terms
            self.groups.setdefault(name, GroupSamples()).add(torch.cat(parts, 1), own)
        self._rows.clear()


def _by_sample(rows: torch.Tensor, layout: Layout, sequences: int) -> torch.Tensor:
    """(samples, tokens, formats) of rows (rows, formats)."""
    if layout is Layout.MIXED:
        return rows[None]
    if layout is Layout.OUTER:
        return rows.reshape(sequences, -1, rows.shape[-1])
    return rows.reshape(-1, sequences, rows.shape[-1]).transpose(0, 1)


def _common(groups: dict[str, tuple[str, ...]], layouts: dict[str, Layout]) -> dict[str, Layout]:
    """The layout of each group; mixed where its units have several."""
    found = {}
    for name, group in groups.items():
        every = {layouts.get(unit, Layout.MIXED) for unit in group}
        found[name] = every.pop() if len(every) == 1 else Layout.MIXED
    return found
