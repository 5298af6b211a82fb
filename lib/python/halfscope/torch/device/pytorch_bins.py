"""Exact counts by PyTorch operations, made where the elements are: bin for bin what the compiled kernels count.

Everything stays on the tensor's device, and nothing here waits for it. The bins are those of
kernel/histogram/binned_histogram.hpp.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from halfscope.formats import describe

CLASSES = 4
SUBNORMALS = CLASSES * 256  # where the bins of float32's subnormal numbers begin
NEGATIVE_ZEROS = SUBNORMALS + CLASSES * 23
MAX_ABS = NEGATIVE_ZEROS + 1  # the bits of the largest finite magnitude
SIZE = MAX_ABS + 1

_SIGN, _INFINITY, _SMALLEST_NORMAL, _FRACTION = -(2**31), 0x7F800000, 1 << 23, (1 << 23) - 1
# Formats that PyTorch rounds to, ties to even, with an infinity.
ROUNDED = {"fp16": torch.float16, "bf16": torch.bfloat16}
_PIECE = 1 << 24  # elements at a time: their bins are 64-bit
_TABLES = 64  # so that not all threads of a device wait for the same counter


def histogram_bins(tensor: torch.Tensor, format: str = "fp16") -> torch.Tensor:
    """Counts of the elements of `tensor`, any shape and floating-point type, at the edges of `format`: (SIZE,) int64.

    float64 is rounded to odd first, as `halfscope.Histogram` does it.
    """
    bins = _no_bins(tensor)
    for (piece,) in _pieces(tensor):
        _count(bins, _bits(piece), None, format)
    return bins


def ratio_bins(weights: torch.Tensor, updates: torch.Tensor, format: str = "fp16") -> torch.Tensor:
    """Counts of |dw| / |w| of the elements in which neither is zero, as `halfscope.update_ratios` counts them."""
    bins = _no_bins(weights)
    for piece, update in _pieces(weights, updates):
        w, dw = _float32(piece), _float32(update)
        both = (w != 0) & (dw != 0)
        _count(bins, torch.where(both, (dw / w).abs(), torch.zeros_like(w)).view(torch.int32), both, format)
    return bins


def update_effect(weights: torch.Tensor, updates: torch.Tensor, format: str = "fp16") -> torch.Tensor:
    """Lost and moved `updates` to weights in a format of ROUNDED, as `halfscope.lost_updates` has them: (4,) int64.

    How many are not zero; how many of them are lost; and the bits of two doubles, the sums of what is applied and of
    what was intended, whose last places depend on the order in which the device adds.
    """
    kind = ROUNDED[format]
    counts = torch.zeros(2, dtype=torch.int64, device=weights.device)
    sums = torch.zeros(2, dtype=torch.float64, device=weights.device)
    for piece, update in _pieces(weights, updates):
        stored, dw = _float32(piece).to(kind).float(), _float32(update)
        updated = _add_to_odd(stored, dw).to(kind).float()
        nonzero = dw != 0
        counts += torch.stack([nonzero.sum(), (nonzero & (updated == stored)).sum()])
        applied = (updated.double() - stored.double()).abs()
        told = nonzero & torch.isfinite(applied)
        sums += torch.stack([_sum_where(told, part) for part in (applied, dw.double().abs())])
    return torch.cat([counts, sums.view(torch.int64)])


def _no_bins(like: torch.Tensor) -> torch.Tensor:
    return torch.zeros(SIZE, dtype=torch.int64, device=like.device)


def _pieces(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    """Pieces of the flattened tensors, side by side; none of empty tensors."""
    flat = [tensor.detach().reshape(-1) for tensor in tensors]
    for start in range(0, flat[0].numel(), _PIECE):
        yield tuple(tensor[start : start + _PIECE] for tensor in flat)


def _count(bins: torch.Tensor, bits: torch.Tensor, counted: torch.Tensor | None, format: str) -> None:
    """Adds float32 numbers, given as int32, to `bins`; where `counted` is False they must be zeros and add nothing."""
    lower, upper = describe(format)["binade_edges"]
    magnitude = bits & ~_SIGN
    subnormal = magnitude < _SMALLEST_NORMAL
    # A subnormal number is an integer times 2^-149: as a float32 that integer is exact, with an exponent of its own.
    normalised = magnitude.float().view(torch.int32)
    own_binade = SUBNORMALS + CLASSES * ((normalised >> 23) - 127)
    first = torch.where(subnormal & (magnitude != 0), own_binade, CLASSES * (magnitude >> 23))
    fraction = torch.where(subnormal, normalised, magnitude) & _FRACTION
    bin_ = first + (fraction == 0).int() + 2 * (fraction >= lower).int() + (fraction >= upper).int()
    table = torch.arange(bits.numel(), device=bits.device) & (_TABLES - 1)
    ones = (
        torch.ones(1, dtype=torch.int64, device=bits.device).expand(bits.numel()) if counted is None else counted.long()
    )
    tables = torch.zeros(_TABLES * MAX_ABS, dtype=torch.int64, device=bits.device)
    bins[:MAX_ABS] += tables.scatter_add_(0, table * MAX_ABS + bin_, ones).view(_TABLES, MAX_ABS).sum(0)
    bins[NEGATIVE_ZEROS] += (bits == _SIGN).sum()
    largest = torch.where(magnitude < _INFINITY, magnitude, torch.zeros_like(magnitude)).max()
    bins[MAX_ABS] = torch.maximum(bins[MAX_ABS], largest.long())


def _float32(tensor: torch.Tensor) -> torch.Tensor:
    return _bits(tensor).view(torch.float32)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Bits as float32, in int32: exact, but for float64, which is rounded to odd (see kernel/cast/convert.hpp)."""
    nearest = tensor.float()
    bits = nearest.view(torch.int32)
    if tensor.dtype is not torch.float64:
        return bits
    back = nearest.double()
    odd = (bits - (back.abs() > tensor.abs()).int()) | 1
    return torch.where((back < tensor) | (back > tensor), odd, bits)


def _add_to_odd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a + b rounded to odd, so that rounding it again to 16 bits is rounding once; the error is Knuth's TwoSum."""
    total = a + b
    b_part = total - a
    error = ((a - (total - b_part)) + (b - b_part)).view(torch.int32)
    bits = total.view(torch.int32)
    size = error & ~_SIGN
    moves = (size != 0) & (size < _INFINITY) & (bits & 1 == 0)
    outwards = 1 - 2 * ((bits ^ error) < 0).int()
    return torch.where(moves, bits + outwards, bits).view(torch.float32)


def _sum_where(told: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return torch.where(told, values, torch.zeros_like(values)).sum()
