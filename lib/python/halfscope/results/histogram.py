"""Exponent histograms as recorded: counts per binade without the loss scale, and shares of a cast to their format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

import halfscope

if TYPE_CHECKING:
    from halfscope import Histogram

# Rows and columns of Histogram.binades().
LOWEST_EXPONENT = -149
PER_BINADE = ("counts", "pow2", "top", "subnormal_carry")


@dataclass(frozen=True)
class Outcome:
    """Effects of a cast on a histogram, as shares of all elements (zeros, infinities, NaN included)."""

    zeros: float
    flushed: float
    subnormal: float
    normal: float
    overflow: float
    nonfinite: float


@dataclass(frozen=True)
class RecordedHistogram:
    """Counts of halfscope.Histogram at any scale, so that binades may lie outside of float32's.

    Elements per binade of |x|: counts[i] of them lie in [2^(first_exponent+i), 2^(first_exponent+i+1)).

    `pow2`, `top` and `subnormal_carry` count, per binade, those that are exactly 2^e, those that in FP16 round up to
    65536 where e is 15, and those that round up to 2^-14 where e is -15, or what stands for these in another `format`;
    they decide the edges of the bands exactly. `zeros` counts zeros of either sign.
    """

    first_exponent: int = 0
    counts: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))  # (binades,)
    pow2: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    top: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    subnormal_carry: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    zeros: int = 0
    infinities: int = 0
    nans: int = 0
    format: str = "fp16"  # format of the cast

    @classmethod
    def of(cls, histogram: Histogram) -> RecordedHistogram:
        """The same counts."""
        first, binades = filled(histogram)
        return cls(
            first_exponent=first,
            **dict(zip(PER_BINADE, binades.T.copy())),
            zeros=histogram.zeros,
            infinities=histogram.infinities,
            nans=histogram.nans,
            format=histogram.format,
        )

    @property
    def elements(self) -> int:
        return int(self.counts.sum()) + self.zeros + self.infinities + self.nans

    @property
    def exponents(self) -> np.ndarray:
        """Lower edge of every binade, log2. (binades,)"""
        return self.first_exponent + np.arange(len(self.counts))

    def shifted(self, log2_scale: int) -> RecordedHistogram:
        """The histogram of the elements times 2^log2_scale."""
        return replace(self, first_exponent=self.first_exponent + log2_scale)

    def of_nonzero(self) -> RecordedHistogram:
        """The finite elements that are not zero: of these a cast may flush some, which shares of all would hide."""
        return replace(self, zeros=0, infinities=0, nans=0)

    def within(self, low: int, high: int) -> np.ndarray:
        """Counts of the binades low..high; what lies outside is added to the first and the last. (high - low + 1,)"""
        shares = np.zeros(high - low + 1, np.int64)
        np.add.at(shares, np.clip(self.exponents, low, high) - low, self.counts)
        return shares

    def outcome(self, log2_scale: int = 0) -> Outcome:
        """Effects of a cast to the format of the elements times 2^log2_scale."""
        binades = np.stack([getattr(self, name) for name in PER_BINADE], axis=1)  # (binades, 4)
        cast = halfscope.WhatIf.of_binades(self.first_exponent, binades, log2_scale, format=self.format)
        every = max(self.elements, 1)
        return Outcome(
            zeros=self.zeros / every,
            flushed=cast.flushed / every,
            subnormal=cast.subnormal / every,
            normal=(cast.nonzero - cast.flushed - cast.subnormal - cast.overflow) / every,
            overflow=cast.overflow / every,
            nonfinite=(self.infinities + self.nans) / every,
        )


def filled(histogram: Histogram) -> tuple[int, np.ndarray]:
    """The exponent of the first binade that holds anything, and Histogram.binades() from there to the last such one."""
    binades = histogram.binades()
    rows = np.flatnonzero(binades[:, 0])
    return (LOWEST_EXPONENT + int(rows[0]), binades[rows[0] : rows[-1] + 1]) if len(rows) else (0, binades[:0])


def merge(histograms: Iterable[RecordedHistogram]) -> RecordedHistogram:
    """The histogram of all elements together. Raises ValueError where they are for different formats."""
    parts = list(histograms)
    formats = sorted({part.format for part in parts}) or ["fp16"]
    if len(formats) > 1:
        raise ValueError(f"histograms for {' and '.join(formats)} cannot be merged; give those for one format")
    with_binades = [part for part in parts if len(part.counts)]
    first = min((part.first_exponent for part in with_binades), default=0)
    end = max((part.first_exponent + len(part.counts) for part in with_binades), default=0)
    merged = {name: np.zeros(end - first, np.int64) for name in PER_BINADE}
    for part in with_binades:
        start = part.first_exponent - first
        for name, counts in merged.items():
            counts[start : start + len(part.counts)] += getattr(part, name)
    return RecordedHistogram(
        first_exponent=first,
        **merged,
        zeros=sum(part.zeros for part in parts),
        infinities=sum(part.infinities for part in parts),
        nans=sum(part.nans for part in parts),
        format=formats[0],
    )
