"""Powers of two that keep a tensor within FP16's range, from counts of its exponents."""

from __future__ import annotations

import math

import torch

LARGEST = 65504.0
NORMAL = -14  # exponent of the least normal number
SHARES = (0.01, 0.5)  # numbers that may lie below the normal ones: the first, if there is a solution


def highest(largest: float) -> float:
    """The greatest power of two that a magnitude can have without overflow in FP16."""
    if largest == 0:
        return math.inf
    fraction, exponent = math.frexp(largest)
    return 15 - exponent + (fraction <= math.ldexp(LARGEST, -16))


def lowest(numbers: torch.Tensor) -> tuple[float, float]:
    """The least power at which no more than each share of the numbers lies below the normal ones; zeros apart."""
    exponents = torch.frexp(numbers[numbers != 0])[1]
    if not len(exponents):
        return -math.inf, -math.inf
    least = int(exponents.min())
    below = (exponents - least).bincount().cumsum(0) / len(exponents)
    first, second = (NORMAL - (least + int((below <= share).sum()) - 1) for share in SHARES)
    return first, second
