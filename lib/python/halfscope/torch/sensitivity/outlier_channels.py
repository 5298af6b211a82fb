"""Result of `Sensitivity.outlier_channels`: what the largest channel of each operand costs the others in a format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfscope.reporting import Finding, Report, Reported
from halfscope.results.dataframes import frame
from halfscope.text_tables import aligned
from halfscope.torch.sensitivity.measurement import Subject
from halfscope.torch.sensitivity.operand_channels import (
    BLOCK,
    BLOCK_SIZE,
    OUTLIER,
    ROW,
    TENSOR,
    WITH,
    WITHOUT,
    Bools,
    ChannelSums,
    Key,
    OperandChannels,
    operand_name,
)
from halfscope.torch.words import counted, listed

if TYPE_CHECKING:
    import pandas as pd

ROWS = 10  # rows of the table
NAMED = 5  # operands that have a finding
NOTICEABLE = 1.1  # times the error without the outliers, from which on their cost is told
SCALES = (ROW, BLOCK, TENSOR)
NUMBERS = ("channel", "ratio", "whole", "others", "without", *SCALES)


@dataclass(frozen=True)
class ChannelCost:
    """The channel with the largest maximum in an operand, and errors of a format: norms over the operand's.

    An error of the others leaves the outliers out of both norms.
    """

    operand: str  # "input of 0.q + k + v", "weight of 0.q"
    unit: str
    side: str
    channel: int
    ratio: float  # its maximum over the median channel's
    outliers: tuple[int, ...]  # it and other channels of at least 4 times the median, the largest first
    whole: float  # error of the operand with all its channels
    others: float  # error of the others
    without: float  # error of the others where the outliers are zero
    row: float  # error of the others with one FP32 scale per row; NaN where the format's elements take none
    block: float  # per block of 32
    tensor: float

    @property
    def cost(self) -> float:
        """Error that the outliers add to the others; infinity where they alone are beyond the format."""
        if not math.isfinite(self.whole):
            return math.inf if math.isfinite(self.without) else 0.0
        return self.others - self.without

    @property
    def stands_out(self) -> bool:
        """Whether it is an outlier, and the others' error noticeably less without it."""
        return self.ratio >= OUTLIER and self.cost > (NOTICEABLE - 1) * self.without


class OutlierChannels(Reported):
    """Operands by what their outlier channels cost the others, the most first."""

    def __init__(self, format: str, operands: tuple[ChannelCost, ...], batches: int) -> None:
        self.format, self._batches = format, batches
        self.operands = tuple(sorted(operands, key=lambda each: (-each.stands_out, -each.cost, -each.ratio)))

    def to_pandas(self) -> pd.DataFrame:
        """A row for each operand, the largest cost first. Raises ImportError without pandas."""
        columns = ["operand", "unit", "side", *NUMBERS, "cost", "outliers", "stands_out"]
        rows = [[getattr(each, name) for name in columns] for each in self.operands]
        return frame(rows, columns=columns).set_index("operand")

    @property
    def report(self) -> Report:
        """Channels to multiply apart, or that none stands out; and the table."""
        findings = tuple(self._finding(each) for each in self.operands if each.stands_out)[:NAMED]
        text = "" if findings else self._nothing()
        return Report("outlier_channels", findings, about=self._about(), text=text, table=self.table())

    def _finding(self, each: ChannelCost) -> Finding:
        change = f"Multiply {_channels(each)} of the {each.operand} apart from {self.format}, in BF16"
        why = f"the largest number of channel {each.channel} is {each.ratio:.3g} times the median channel's"
        if math.isfinite(each.whole):
            why += f"; the error of the others is {each.others:.3g} with {_them(each)}, {each.without:.3g} without"
        else:
            why += f", and not finite in {self.format}"
        if NOTICEABLE * each.whole < each.others:
            why += f"; the whole operand's error, {each.whole:.3g}, hides it"
        sure = f"computed on {self._on()}; no output was tried"
        return Finding("outlier channel", change, why, sure, about=each)

    def _nothing(self) -> str:
        largest = max(self.operands, key=lambda each: each.ratio, default=None)
        if largest is None:
            return f"No channel stands out in {self.format}: no operand has numbers"
        words = f"channel {largest.channel} of the {largest.operand} has {largest.ratio:.3g} times the median channel's"
        text = f"No channel stands out in {self.format}: {words} largest number"
        if largest.ratio < OUTLIER:
            return f"{text}, and no other has more"
        return f"{text}, but the others' error is {largest.others:.3g} with it and {largest.without:.3g} without"

    def table(self) -> str:
        """Errors by operand, the largest cost first; a dash where the elements take no scale."""
        rows: list[tuple[str, ...]] = [("operand", "channel", "ratio", "outliers", *NUMBERS[2:])]
        for each in self.operands[:ROWS]:
            errors = (getattr(each, name) for name in NUMBERS[2:])
            sizes = (f"{each.channel}", f"{each.ratio:.3g}", f"{len(each.outliers)}")
            rows.append((each.operand, *sizes, *("-" if math.isnan(error) else f"{error:.3g}" for error in errors)))
        rest = len(self.operands) - ROWS
        return f"{aligned(rows)}\nand {counted(rest, 'operand')} with less" if rest > 0 else aligned(rows)

    def _on(self) -> str:
        return counted(self._batches, "batch")

    def _about(self) -> str:
        return (
            f"Looked at: {counted(len(self.operands), 'operand')} in {self.format}, {self._on()}; evaluation mode. "
            "Ratio: of the largest channel's maximum to the median channel's. Errors are norms over the operand's: of "
            "all channels (whole), of all but the outliers (others), of the same where the outliers are 0 (without), "
            f"and of the others with one FP32 scale per row, per block of {BLOCK_SIZE} and per tensor."
        )


def _channels(each: ChannelCost) -> str:
    names = listed(map(str, each.outliers))
    return f"channel{'s' * (len(each.outliers) > 1)} {names}"


def _them(each: ChannelCost) -> str:
    return "it" if len(each.outliers) == 1 else f"these {len(each.outliers)}"


def outlier_channels(subject: Subject, format: str) -> OutlierChannels:
    """As `Sensitivity.outlier_channels` has it."""
    if format not in subject.formats:
        raise ValueError(f"outlier_channels: format {format!r}; give one of {', '.join(subject.formats)}")
    if subject.formats[format].is_static:
        raise ValueError(
            f"outlier_channels: {format} has the scale of all batches; give a format whose scales are each tensor's own"
        )
    if "+hadamard" in format:
        raise ValueError(f"outlier_channels: {format} mixes channels before it rounds; give a format without hadamard")
    found = OperandChannels(subject, subject.formats[format]).measure()
    names = _names(found)
    costs = tuple(_cost(names[key], key, sums) for key, sums in found.items() if sums.median)
    return OutlierChannels(format, costs, len(subject.calibration.batches))


def _names(found: Mapping[Key, ChannelSums]) -> dict[Key, str]:
    """A name each; of operands with one name, with their number of channels."""
    plain = {key: operand_name(key, sums) for key, sums in found.items()}
    every = list(plain.values())
    return {key: name if every.count(name) == 1 else f"{name} ({key.channels} channels)" for key, name in plain.items()}


def _cost(name: str, key: Key, sums: ChannelSums) -> ChannelCost:
    outliers = np.flatnonzero(sums.outliers)
    ordered = tuple(int(at) for at in outliers[np.argsort(-sums.maxima[outliers], kind="stable")])
    kept, every = ~sums.outliers, np.ones(key.channels, bool)
    scaled = {kind: _error(sums, kind, kept) if kind in sums.errors else math.nan for kind in SCALES}
    return ChannelCost(
        name, key.unit, key.side, ordered[0], float(sums.maxima.max() / sums.median), ordered,
        _error(sums, WITH, every), _error(sums, WITH, kept), _error(sums, WITHOUT, kept), **scaled,
    )  # fmt: skip


def _error(sums: ChannelSums, kind: str, channels: Bools) -> float:
    norm, error = float(sums.squares[channels].sum()), float(sums.errors[kind][channels].sum())
    return math.sqrt(error / norm) if norm else 0.0
