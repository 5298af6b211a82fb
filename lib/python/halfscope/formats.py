"""Number formats by name: their words in a sentence, their ranges, steps between their numbers, rounding to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from halfscope import _core, arithmetic

Floats = NDArray[np.float64]

FP32_EXPONENT_BITS = 8


@dataclass(frozen=True)
class Format:
    """A number format with its limits, and the rounding to it."""

    name: str  # with the rounding, where that is not the nearest number: "bf16/stochastic"
    exponent_bits: int
    precision: int  # bits of a significand, the leading one included
    largest: float
    smallest_normal: float
    smallest: float  # above zero

    @classmethod
    def of(cls, name: str) -> Format:
        """Raises ValueError for an unknown format, and for one of blocks."""
        found = describe(element_of(name))
        return cls(
            name, int(found["exponent_bits"]), int(found["mantissa_bits"]) + 1,
            float(found["largest"]), float(found["smallest_normal"]), float(found["smallest"]),
        )  # fmt: skip

    @property
    def label(self) -> str:
        return label(element_of(self.name))

    @property
    def has_range_of_fp32(self) -> bool:
        """Whether its exponents are those of FP32, so that no loss scale is needed."""
        return self.exponent_bits == FP32_EXPONENT_BITS

    @property
    def is_stochastic(self) -> bool:
        return "stochastic" in self.name

    def step_at(self, value: float) -> float:
        """The distance of neighbouring numbers at a value."""
        _, exponent = math.frexp(max(abs(value), self.smallest_normal))
        return math.ldexp(1.0, exponent - self.precision)

    def steps_at(self, values: Floats) -> Floats:
        """The same distance, at each of many numbers."""
        _, exponents = np.frexp(np.maximum(np.abs(values), self.smallest_normal))
        return np.ldexp(1.0, exponents - self.precision)

    def round(self, value: float) -> float:
        """The number of the format for an FP32 number."""
        return _rounded(value, self.name)


def label(format: str) -> str:
    """FP16 for fp16, FP8 E4M3 for fp8_e4m3."""
    return format.upper().replace("_", " ")


def describe(format: str) -> dict[str, Any]:
    """exponent_bits, mantissa_bits; largest, smallest_normal and smallest positive number; format, its own name.

    Raises ValueError for an unknown format.
    """
    return _core.describe_format(format)


@cache
def element_of(name: str) -> str:
    """The format of "fp8_e4m3/stochastic", without its rounding and what overflow does.

    Raises ValueError for an unknown format, and for one of blocks.
    """
    return str(_core.describe_quantizer(name)["format"])


def is_in_blocks(format: str) -> bool:
    """Whether it is the name of a block format, whose blocks have scales of their own."""
    try:
        return _core.is_block_format(format)
    except ValueError:
        return False


@cache
def _rounded(value: float, format: str) -> float:
    with np.errstate(over="ignore"):  # beyond FP32 it is infinite
        wide = np.array([value], np.float32)
    return float(arithmetic.round(wide, format)[0])
