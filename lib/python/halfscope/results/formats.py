"""Number formats by name: as a sentence has them, and their ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

from halfscope import _core

FP32_EXPONENT_BITS = 8


def label(format: str) -> str:
    """FP16 for fp16, FP8 E4M3 for fp8_e4m3."""
    return format.upper().replace("_", " ")


def describe(format: str) -> dict[str, Any]:
    """exponent_bits, mantissa_bits; largest, smallest_normal and smallest positive number; format, its own name.

    Raises ValueError for an unknown format.
    """
    return _core.describe_format(format)


def is_in_blocks(format: str) -> bool:
    """Whether it is the name of a block format, whose blocks have scales of their own."""
    try:
        return _core.encode(np.zeros(1, np.float32), format)[1] is not None
    except ValueError:
        return False


def has_range_of_fp32(format: str) -> bool:
    """Whether its exponents are those of FP32, so that no loss scale is needed."""
    return describe(format)["exponent_bits"] == FP32_EXPONENT_BITS
