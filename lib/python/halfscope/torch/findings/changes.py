"""Changes of a step that try a remedy: operations in FP32, other constants, scaled products."""

from __future__ import annotations

import math
from typing import Any

import torch

from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.events.change import Override
from halfscope.torch.findings.fault import Fault, Made
from halfscope.torch.findings.shapes import (
    flushed_constant,
    is_below_reciprocal_root,
    is_below_root,
    large_constant,
    made_by,
)
from halfscope.torch.operations.table import Trait, named

Trial = dict[str, Override]


def wide(*rows: str) -> Trial:
    """Operations in FP32, by the rows of their results."""
    return {row: Override(is_wide=True) for row in rows}


def in_fp32(fault: Fault) -> Trial:
    """The operation of the fault in FP32."""
    return wide(fault.made.row)


def _with_constant(made: Made, old: float, new: float) -> Trial:
    """Writes another constant into an operation."""

    def replaced(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() == 0 and math.isclose(float(value), old, rel_tol=1e-6):
            return torch.full_like(value, new)
        return new if isinstance(value, float) and math.isclose(value, old, rel_tol=1e-6) else value

    def arguments(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        return tuple(map(replaced, args)), {key: replaced(value) for key, value in kwargs.items()}

    return {made.row: Override(arguments=arguments)}


def mask_value(fault: Fault) -> float:
    """A power of ten that the format has, to mask with."""
    return 10.0 ** math.floor(math.log10(fault.format.largest / 2))


def other_mask(fault: Fault) -> Trial:
    """A mask constant that the format has."""
    made, value = large_constant(fault) or (fault.made, 0.0)
    return _with_constant(made, value, math.copysign(mask_value(fault), value))


def clamped(fault: Fault) -> Trial:
    """The result between the format's largest numbers."""
    limit = fault.format.largest
    return {fault.made.row: Override(is_wide=True, result=lambda result: result.clamp(-limit, limit))}


def shift_of(fault: Fault) -> int:
    """The power of two that leaves a factor of 4 to the largest number."""
    return max(1, math.ceil(math.log2(max(fault.ratio, 1.0))) + 2)


def shifted(fault: Fault) -> Trial:
    """The product smaller by a power of two, for good: as where a scale-invariant layer follows."""
    shift = 2.0 ** -shift_of(fault)

    def arguments(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        tensors = [place for place, value in enumerate(args) if isinstance(value, torch.Tensor)]
        first = max(tensors, key=lambda place: args[place].dim() > 0)
        return (*args[:first], args[first] * shift, *args[first + 1 :]), kwargs

    return {fault.made.row: Override(arguments=arguments)}


def scaled(fault: Fault) -> Trial:
    """The product rounded where it is smaller by a power of two, and back in FP32: as where the factor moves ahead."""
    shift, name = 2.0 ** shift_of(fault), fault.format.name

    def result(product: torch.Tensor) -> torch.Tensor:
        scaled = device_of(product).round(product / shift, name)
        return scaled * shift

    return {fault.made.row: Override(is_wide=True, result=result)}


def logarithm_in_fp32(fault: Fault) -> Trial:
    """FP32 from the probabilities to their logarithm."""
    made = made_by(fault, *named(Trait.DROPS_MASK), "sigmoid")
    between = [each.row for each in fault.sources if each.operation in ("add", "mul", "clamp", "clamp_min", "maximum")]
    return wide(*([] if made is None else [made.row]), *between, fault.made.row)


def safe_eps(fault: Fault) -> float:
    """Above the smallest number forward, and for a finite gradient: 1/eps, 1/sqrt(eps), or half of eps^(-3/2)."""
    limit = fault.format.smallest if is_below_root(fault) else 1 / fault.format.largest
    if is_below_reciprocal_root(fault):
        limit = max(limit, (2 * fault.format.largest) ** (-2 / 3))
    return 10.0 ** math.ceil(math.log10(limit))


def other_eps(fault: Fault) -> Trial:
    """An eps that the format has."""
    made, value = flushed_constant(fault) or (fault.made, 0.0)
    return _with_constant(made, value, safe_eps(fault))
