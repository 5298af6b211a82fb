"""Operands of an operation as a format sees them: ranges, and constants with their value in the format."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.formats import Format


@dataclass(frozen=True)
class Constant:
    """A number in the source, and what the format makes of it."""

    value: float
    stored: float

    @property
    def is_lost(self) -> bool:
        """Whether it overflows or vanishes in the format, or becomes 1."""
        return not math.isfinite(self.stored) or (self.stored in (0, 1) and self.value != self.stored)

    def words(self, format: Format) -> str:
        if self.value == self.stored:
            return f"{self.value:g}"
        digits = f"{self.value:g}" if self.stored != 1 else f"{self.value:.9g}"
        return f"{digits} is {self.stored:.4g} in {format.label}"


@dataclass(frozen=True)
class Operand:
    """A tensor that went into an operation: finite magnitudes in FP32, and what it was where the format held it."""

    name: str
    largest: float  # largest of the finite FP32 numbers
    smallest: float  # above zero
    flushed: int  # elements that are zero, and are not in FP32
    infinite: int  # elements that are not finite, and are in FP32

    def words(self) -> str:
        return f"{self.name} up to {self.largest:.4g}"


def constant_of(value: Any, format: Format, is_known: Any) -> Constant | None:
    """A number among an operation's arguments; is_known: whether a tensor was computed, or belongs to the model."""
    if isinstance(value, torch.Tensor):
        if value.dim() or not value.is_floating_point() or value.is_meta or is_known(value):
            return None
        value = float(value.detach())
    if type(value) is not float or not math.isfinite(value):
        return None
    return Constant(value, format.round(value))


def operand_of(name: str, tensor: torch.Tensor, exact: torch.Tensor, seen: torch.Tensor) -> Operand:
    """tensor: as it came; exact: its FP32 counterpart; seen: in the format."""
    del tensor
    finite = exact[exact.isfinite()].abs().float()
    positive = finite[finite > 0]
    return Operand(
        name,
        float(finite.max()) if finite.numel() else 0.0,
        float(positive.min()) if positive.numel() else 0.0,
        int(((seen == 0) & (exact != 0)).sum()),
        int((~seen.isfinite() & exact.isfinite()).sum()),
    )


def flat(value: Any) -> list[Any]:
    """Arguments, those inside of lists and dictionaries too."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return [value]
    found: list[Any] = []
    for each in value:
        if isinstance(each, (list, tuple, dict)):
            found += flat(each)
        else:
            found.append(each)
    return found
