"""Verdict of the steps that were watched for a block format, as lines: the training to type, then the counts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from statistics import median_low
from typing import NamedTuple

from halfscope import BlockCounts
from halfscope.results.loss_scales import GRADIENTS
from halfscope.torch.counts.block_table import BlockRow
from halfscope.torch.counts.block_totals import BlockTotals
from halfscope.torch.counts.blocks import BLOCK_ROLES, WEIGHT
from halfscope.torch.counts.histogram_words import Circumstances, gaps
from halfscope.torch.counts.histograms import OPTIMIZER_STATE
from halfscope.torch.words import called, listed, percent

_STANDS_OUT = 2**0.5  # error beside the median of its role: 3 dB
_MOST_FLUSHED = 0.2  # share of a tensor's elements: of normal numbers MXFP4 flushes a tenth
_HALF = 0.5  # the same, whatever other tensors lose
_WORDS = {
    "activation": "outputs", "activation_gradient": "gradients of outputs", "weight": "weights",
    "weight_gradient": "gradients of weights", OPTIMIZER_STATE: "optimizer state",
}  # fmt: skip


def block_verdict(totals: BlockTotals, about: Circumstances) -> str:
    """Lines: tensors to leave out first, what loses numbers, then each role's error, and what was not looked at."""
    roles = [role for role in (*BLOCK_ROLES, OPTIMIZER_STATE) if totals.of(role)]
    lines = _not_finite(totals)
    if not roles:
        lines.append("No number has been seen: train a step first.")
    else:
        lines += [*_outstanding(totals, roles), *_zero_scales(totals), *_lost(totals)]
        steps = f"{totals.steps} watched step{'s' * (totals.steps != 1)}"
        ranks = f" of {about.ranks} ranks" if about.ranks > 1 else ""
        lines.append(f"{_name(totals)} over {steps}{ranks}:")
        lines += [_role_line(totals, role) for role in roles]
    return "\n".join([*lines, *gaps(totals.steps, totals.unreadable, about)])


def _name(totals: BlockTotals) -> str:
    """MXFP4 for mxfp4, FP8 1x128 for fp8_1x128; names with a rule or in the grammar as they were typed."""
    name = totals.format
    return name if "(" in name or "/" in name else re.sub(r"(\d)X(\d)", r"\1x\2", name.upper().replace("_", " "))


def _not_finite(totals: BlockTotals) -> list[str]:
    found = [row for role in ("activation", "weight") for row in totals.rows.values() if row.place == role]
    bad = [_place(row, f"{row.counts.nonfinite} of {row.counts.elements}") for row in found if row.counts.nonfinite]
    lines = _without_finite_gradients(totals)
    if not bad:
        return lines
    return [
        *lines,
        f"Look at the inputs and the loss first: elements are infinite or NaN before any cast to {_name(totals)}, in "
        f"{listed(bad)}.",
    ]


def _without_finite_gradients(totals: BlockTotals) -> list[str]:
    rows = [row for row in totals.rows.values() if row.place in GRADIENTS]
    if any(row.counts.nonfinite < row.counts.elements for row in rows) or not rows:
        return []
    return ["Lower the loss scale first, or look at the loss: no gradient of the watched steps was finite."]


def _outstanding(totals: BlockTotals, roles: Iterable[str]) -> list[str]:
    """The training to type, without the modules whose tensors stand out of their role; then these tensors."""
    found = [each for role in roles for each in _outstanding_of(totals.of(role))]
    if not found:
        return [
            _training(totals, [], "no tensor stands out"),
            f"Errors in {_name(totals)} are within 3 dB of the median of their kind, flushed shares below "
            f"{_MOST_FLUSHED:.0%}, or below {_HALF:.0%} and twice the median.",
        ]
    found.sort(key=lambda each: -max(each.row.error, each.row.flushed_fraction))
    weighted = {_module(row) for row in totals.of(WEIGHT)} - {""}
    modules = [name for name in dict.fromkeys(_module(each.row) for each in found) if name in weighted]
    shares = [_place(each.row, each.words) for each in found]
    return [
        _training(totals, modules[:3], f"leave out {listed(modules)} first" if modules else ""),
        f"{_name(totals)} harms these tensors more than others of their kind: {listed(shares)}.",
    ]


def _training(totals: BlockTotals, without: list[str], why: str) -> str:
    exceptions = ", ".join([f'"*": {{"operands": "*={totals.format}"}}', *(f'"{name}": "bf16"' for name in without)])
    return (
        f"Train in {_name(totals)}{f', {why}' if why else ''}: "
        f'halfscope.torch.emulate(model, "bf16", exceptions={{{exceptions}}}, optimizer=optimizer) '
        "tells how much error the model bears."
    )


class _Outstanding(NamedTuple):
    row: BlockRow
    words: str


def _outstanding_of(rows: list[BlockRow]) -> list[_Outstanding]:
    """Rows of one role: outliers that hide the loss of all other numbers in the norm show in the flushed share."""
    error, flushed = median_low(row.error for row in rows), median_low(row.flushed_fraction for row in rows)
    found = []
    for row in rows:
        if row.counts.flushed_by_scale:
            found.append(_Outstanding(row, f"{row.counts.flushed_by_scale} elements lost to scales of 0"))
        elif error and row.error >= _STANDS_OUT * error:
            found.append(_Outstanding(row, f"error {percent(row.error)}, median {percent(error)}"))
        elif row.flushed_fraction >= min(_HALF, max(_MOST_FLUSHED, 2 * flushed)):
            words = f"{percent(row.flushed_fraction)} flushed, median {percent(flushed)}"
            found.append(_Outstanding(row, words))
    return found


def _zero_scales(totals: BlockTotals) -> list[str]:
    if not any(row.counts.flushed_by_scale for row in totals.rows.values()):
        return []
    return [
        "Scales of blocks far below their tensor's largest underflow to 0; E8M0 scales, as of mxfp4, reach further."
    ]


def _lost(totals: BlockTotals) -> list[str]:
    rows = [row for row in totals.rows.values() if row.counts.lost]
    if not rows:
        return []
    shares = [_place(row, f"{row.counts.lost} of {row.counts.elements}") for row in rows]
    return [f"Finite elements become infinite or NaN, as their block's scale does: {listed(shares)}."]


def _role_line(totals: BlockTotals, role: str) -> str:
    rows = totals.of(role)
    counts = BlockCounts()
    for row in rows:
        counts.merge(row.counts)
    whole, worst = BlockRow("", role, totals.format, counts), max(rows, key=lambda row: row.error)
    scales = counts.scale_range(totals.format)
    reach = f"; scales 2^{scales[0]} to 2^{scales[1]}" if scales else ""
    return (
        f"- {_WORDS[role]}: error {percent(whole.error)} ({whole.decibels:.1f} dB), at most {percent(worst.error)}, in "
        f"{called(worst.layer)}; flushed {percent(whole.flushed_fraction)}, clipped {percent(whole.share('clipped'))}"
        f"{reach}."
    )


def _place(row: BlockRow, size: str) -> str:
    return f"{called(row.layer)}'s {_WORDS[row.place]} ({size})"


def _module(row: BlockRow) -> str:
    """Module of a tensor: a parameter's, and of its optimizer state."""
    parts = {"weight": 1, "weight_gradient": 1, OPTIMIZER_STATE: 2}.get(row.place, 0)
    return ".".join(row.layer.split(".")[:-parts]) if parts else row.layer
