"""Operands of a product in a format, bit for bit as the products of `emulate` see them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from halfscope import _core, compare_formats
from halfscope.encoding import encode
from halfscope.formats import is_in_blocks
from halfscope.torch.device.arithmetic import device_of

LEFT, RIGHT = "left", "right"
STATIC = "+static"
SIDES = (LEFT, RIGHT)
FP32_BITS = 32.0
_MATRIX = (64, 4096)  # a matrix whose bits are counted: no last block is short of elements


class OperandFormat:
    """A format of both operands of the forward product, or of one."""

    def __init__(self, name: str, sides: tuple[str, ...] = SIDES) -> None:
        """Raises ValueError for an unknown format, and for one that draws random numbers or waits for a step."""
        dynamic = _dynamic(name)
        self._casts = {side: _core.OperandCast(dynamic, f"forward.{side}") for side in sides}
        self.name, self.sides, self.is_static = name, sides, dynamic != name
        self.maxima: dict[str, float] = {}  # largest inputs by unit, where scales are static
        self.has_blocks = is_in_blocks(_element(name)) or "+" in name
        cast = next(iter(self._casts.values()))
        if cast.is_stochastic or cast.is_delayed:
            kind = "draws random numbers" if cast.is_stochastic else "has the scales of earlier steps"
            raise ValueError(f"sensitivity: format '{name}' {kind}; give one that is a function of the tensor")
        self.bits = _bits_of(_element(name))

    def image(self, matrix: torch.Tensor, side: str) -> torch.Tensor:
        """A copy (..., summed axis) in the format; the matrix itself on a side that keeps FP32."""
        cast = self._casts.get(side)
        if cast is None or not matrix.numel():
            return matrix
        device = device_of(matrix)
        copy = device.near(matrix.detach()).clone(memory_format=torch.contiguous_format)
        device.cast_blocks(cast, copy, side, {"counts": False, "learns": False, "seed": 0, "step": 0, "part": -1})
        return device.away(copy, matrix)

    def of(self, unit: str) -> OperandFormat | StaticFormat:
        """The format as a unit has it: with the scale of its input, where that is static."""
        return StaticFormat(self, self.maxima[unit]) if unit in self.maxima else self

    @property
    def rule(self) -> str:
        """Rule of `emulate` for the operands of a layer, whose scales are each tensor's own."""
        where = "forward" if len(self.sides) == len(SIDES) else f"forward.{self.sides[0]}"
        return f"{where}={self.name}"


@dataclass(frozen=True)
class StaticFormat:
    """A format whose inputs all have the scale of one maximum; larger numbers saturate."""

    format: OperandFormat
    maximum: float

    @property
    def has_blocks(self) -> bool:
        return self.format.has_blocks

    def image(self, matrix: torch.Tensor, side: str) -> torch.Tensor:
        """As `OperandFormat.image`; a row with the maximum stands behind an input while it is rounded."""
        if side != LEFT or not matrix.numel():
            return self.format.image(matrix, side)
        rows = matrix.detach().reshape(-1, matrix.shape[-1]).clamp(-self.maximum, self.maximum)
        last = torch.zeros_like(rows[:1])
        last[0, 0] = self.maximum
        return self.format.image(torch.cat([rows, last]), side)[:-1].reshape(matrix.shape)


def operand_formats(names: Iterable[str], sides: tuple[str, ...]) -> dict[str, OperandFormat]:
    """Formats by name. Raises TypeError for a string in the place of a list, ValueError for none and for one twice."""
    if isinstance(names, str):
        raise TypeError(f"sensitivity: formats={names!r}; give a list, as ['nvfp4', 'mxfp8_e4m3']")
    given = list(names)
    if not given or len(set(given)) < len(given):
        raise ValueError(f"sensitivity: formats={given}; give one or more, each once, as ['nvfp4', 'mxfp8_e4m3']")
    return {name: _format(name, sides) for name in given}


def _format(name: str, sides: tuple[str, ...]) -> OperandFormat:
    try:
        return OperandFormat(name, sides)
    except ValueError as error:
        text = str(error)
        raise ValueError(text if text.startswith("sensitivity:") else f"sensitivity: {text}") from None


def _dynamic(name: str) -> str:
    """The format whose scale is each tensor's own. Raises ValueError for a static one without a scale of the tensor."""
    if not name.endswith(STATIC):
        return name
    plain = name.removesuffix(STATIC)
    if "+" not in plain and not is_in_blocks(plain):
        return f"{plain}+current"
    if "+" not in plain and encode(torch.ones(1, 256), plain).tensor_scale is not None:
        return plain
    raise ValueError(
        f"sensitivity: format '{name}' has no scale of the whole tensor to keep; give one that has, as "
        "'fp8_e4m3+static' or 'nvfp4+static'"
    )


def _element(name: str) -> str:
    """The format without the options of an operand."""
    return name.partition("+")[0]


def _bits_of(name: str) -> float:
    """Bits per element of a large matrix, its blocks' scales included."""
    (counted,) = compare_formats({"matrix": torch.ones(_MATRIX)}, [name]).to_dict()["formats"]
    return round(float(counted["bits_per_element"]), 2)
