"""Powers of two that keep a tensor within FP16's range, from counts of its exponents."""

from __future__ import annotations

import math

import torch

LARGEST = 65504.0
NORMAL = -14  # exponent of the least normal number
_EXPONENTS = 1100  # more than FP64 has on each side of 0
_PART = 2**16  # numbers that are counted at once, so that what is computed beside them stays small
SHARES = (0.01, 0.5)  # numbers that may lie below the normal ones: the first, if there is a solution


def highest(largest: float) -> float:
    """The greatest power of two that a magnitude can have without overflow in FP16."""
    if largest == 0:
        return math.inf
    fraction, exponent = math.frexp(largest)
    return 15 - exponent + (fraction <= math.ldexp(LARGEST, -16))


def lowest(numbers: torch.Tensor) -> tuple[float, float]:
    """The least power at which no more than each share of the numbers lies below the normal ones; zeros apart."""
    counts = torch.zeros(2 * _EXPONENTS, dtype=torch.int64)
    for part in numbers.detach().reshape(-1).split(_PART):
        counts += (torch.frexp(part[part != 0])[1].cpu() + _EXPONENTS).bincount(minlength=2 * _EXPONENTS)
    if not bool(counts.any()):
        return -math.inf, -math.inf
    least = int(counts.nonzero()[0])
    below = counts[least:].cumsum(0) / counts.sum()
    first, second = (NORMAL - (least - _EXPONENTS + int((below <= share).sum()) - 1) for share in SHARES)
    return first, second
