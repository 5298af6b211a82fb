"""Sentences on a fault, and on state that is ill before a step."""

from __future__ import annotations

import re

import torch

from halfscope.torch.findings.fault import Fault
from halfscope.torch.findings.finding import called, digits, operation_of, place_of
from halfscope.torch.findings.kinds import WORDS
from halfscope.torch.operations.table import TABLE
from halfscope.torch.tensors.elements import all_finite

PARTIAL_SUMS = "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction and its like for BF16 permit it"
_LARGE = ("cast", "sum", "sum of products", "constant", "addition", "product", "power", "exponential")
_NAN = {name: row.nan for name, row in TABLE.items() if row.nan}


def cause(fault: Fault) -> str:
    """The operation, what went wrong, its size."""
    return f"{operation_of(fault.made)}: {_cause(fault)} ({fault.count} of {fault.elements} elements)"


def why(fault: Fault, others: list[Fault]) -> str:
    """Operands, constants, and what becomes of it, where there is something to say; others: all faults of the step."""
    parts = "; ".join([*_operands(fault), *_constants(fault), *([PARTIAL_SUMS] if fault.has_partial_sums else [])])
    sentences = [parts[:1].upper() + parts[1:] if parts else "", *_fate(fault), *_forward(fault, others)]
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def _cause(fault: Fault) -> str:
    format = fault.format
    times = f"{fault.ratio:.2g}" if fault.ratio > 1.05 else f"{fault.ratio:.4g}"
    size = f"{digits(fault.value)}, {times} times {format.label}'s largest number {format.largest:g}"
    words = WORDS[fault.kind]
    if fault.kind == "gradient" and fault.ratio < 1:
        return f"a gradient is infinite or NaN in the backward pass, in FP32 it is {digits(fault.value)} at most"
    if fault.kind == "gradient":
        scale = "" if fault.scale == 1 else f", at a loss scale of {fault.scale:g}"
        return f"{words} in the backward pass: {size}{scale}"
    where = " in the backward pass" if fault.region == "backward" else ""
    if fault.has_partial_sums:
        whole = f" whose whole sum is {size}" if fault.value else ""
        return f"a partial sum of {fault.made.order} overflows{where}, of {fault.terms} terms{whole}"
    if fault.ratio < 1:
        return f"{words}{where}"
    terms = fault.terms
    return f"{words}{where}: {size}" if not terms else f"{words}{where}, of {fault.terms} terms: {size}"


def _operands(fault: Fault) -> list[str]:
    if not fault.operands:
        return []
    listed = [operand.words() for operand in fault.operands[:3]]
    finite = "operands" if not any(operand.infinite for operand in fault.operands) else "as cast, its operands"
    flushed = [
        f"{operand.name} has {operand.flushed} zeros that FP32 has not" for operand in fault.operands if operand.flushed
    ]
    zeros = [] if fault.kind in _LARGE else [re.sub(r"\b1 zeros", "a zero", text) for text in flushed]
    return [f"{finite} {', '.join(listed)}", *zeros[:2]]


def _constants(fault: Fault) -> list[str]:
    words, seen = [], set()
    for made in (fault.made, *fault.sources):
        for constant in made.constants:
            small = 0 < abs(constant.value) < 1 / fault.format.largest
            is_own = made is fault.made and fault.region == "forward"
            if (constant.is_lost or small or is_own) and constant.value not in seen:
                seen.add(constant.value)
                text = constant.words(fault.format)
                if small and not constant.is_lost:
                    text += f", and its reciprocal {1 / constant.value:.3g} is beyond the largest"
                words.append(f"constant {text}" + ("" if made is fault.made else f" (in {called(made.operation)})"))
    return words[:3]


def _fate(fault: Fault) -> list[str]:
    if fault.nan_at is not None and fault.nan_at is not fault.made:
        made = fault.nan_at
        kind = {"mul": "0 * inf"} if made.is_gradient else _NAN
        how = f" ({kind[made.operation]})" if made.operation in kind else ""
        return [f"It is NaN from {place_of(made)} on{', in its gradient' * made.is_gradient}{how}"]
    if fault.hidden_by is not None:
        how = ""
        if fault.damage is not None:
            off = f"{100 * fault.damage:.3g} % off" if fault.damage >= 0.01 else "as in FP32"
            how = f", whose result is {off}"
        return [f"{place_of(fault.hidden_by)} hides it{how}"]
    return []


def _forward(fault: Fault, others: list[Fault]) -> list[str]:
    """The overflow of the forward pass behind a gradient's, which something hid."""
    if fault.region == "forward":
        return []
    same = [other for other in others if other.region == "forward" and other.made.row == fault.made.row]
    return [
        f"Forward it overflows too, {digits(other.value)}, which {called(other.hidden_by.operation)} hides"
        for other in same[:1]
        if other.hidden_by is not None
    ]


def ill_words(name: str, tensor: torch.Tensor) -> str:
    """Sentence on a tensor of a training's state that is not finite before a step; empty for a finite one."""
    bad = 0 if all_finite(tensor) else int((~tensor.isfinite()).sum())
    return f"{name} holds {bad} of {tensor.numel()} elements that are NaN or infinite before the step" if bad else ""
