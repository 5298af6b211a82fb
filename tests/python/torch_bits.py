"""PyTorch tensors of every kind that is counted: any bits, edges of FP16 and of float32, elements that lie apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

SIZES = (0, 1, 31, 257 * 259)
WIDTHS = {torch.float16: np.int16, torch.bfloat16: np.int16, torch.float32: np.int32, torch.float64: np.int64}


def any_bits(dtype: torch.dtype, size: int, seed: int = 0) -> torch.Tensor:
    """Infinities, NaNs and subnormal numbers as often as any."""
    limits = np.iinfo(WIDTHS[dtype])
    bits = np.random.default_rng(seed).integers(limits.min, limits.max, size, endpoint=True, dtype=WIDTHS[dtype])
    return torch.from_numpy(bits).view(dtype)


def edges() -> torch.Tensor:
    """Beside every edge of FP16 and float32, of either sign; numbers around 1; float32's subnormals of every binade."""
    marks = np.float32([2.0**-25, 2.0**-24, 2.0**-14, 65504, 65520, 65536, 1, 2.0**-126, 2.0**-149, 3.4028235e38, 0])
    ends = [(1 << 23) * field + fraction for field in (1, 102, 112, 127, 142, 254) for fraction in (0x7FE000, 0x7FF000)]
    bits = np.concatenate(
        [marks.view(np.int32), np.int32(ends), np.int32(2) ** np.arange(24), [0x7F800000, 0x7FC00000]]
    )
    around = (bits[:, None] + np.arange(-2, 3)).reshape(-1).astype(np.int64)
    both = np.concatenate([around, around | 0x80000000]) & 0xFFFFFFFF
    return torch.from_numpy(both.astype(np.uint32).view(np.float32))


def all_halves(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)


def doubles() -> torch.Tensor:
    """At and right beside the edges of FP16, closer than float32 can tell, and out of its range."""
    marks = np.array(
        [2.0**-25, 2.0**-24, 2.0**-14 * (1 - 2.0**-12), 65504, 65520, 1e-300, 5e-324, 1e300, np.inf, np.nan, 0]
    )
    beside = [np.nextafter(marks, limit) for limit in (0, np.inf)]
    return torch.from_numpy(np.concatenate([marks, *beside, -marks]))


KINDS: dict[str, Callable[[], torch.Tensor]] = {
    **{f"{dtype} {size}": lambda dtype=dtype, size=size: any_bits(dtype, size) for dtype in WIDTHS for size in SIZES},
    "edges": edges,
    "all float16": lambda: all_halves(torch.float16),
    "all bfloat16": lambda: all_halves(torch.bfloat16),
    "doubles": doubles,
    "gradients": lambda: torch.from_numpy(np.random.default_rng(1).normal(0, 1e-6, 50_000).astype(np.float32)),
    "transposed": lambda: any_bits(torch.float32, 31 * 57).reshape(31, 57).t(),
    "strided": lambda: any_bits(torch.float16, 31 * 58).reshape(31, 58)[1::3, ::2],
    "reversed": lambda: any_bits(torch.float32, 1000).flip(0)[::7],
    "expanded": lambda: torch.tensor([1.5, -0.0, 1e-40]).expand(5, 3),
    "0-d": lambda: torch.tensor(-2.5),
}


PAIRS = 13


def pairs() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """PAIRS times weights and updates."""
    for dtype in (torch.float32, torch.float64):
        for size in SIZES:
            yield any_bits(dtype, size, 1), any_bits(dtype, size, 2)
    weights = torch.from_numpy(np.random.default_rng(3).normal(0, 1, 40_000))
    updates = weights * 2.0 ** torch.from_numpy(np.random.default_rng(4).uniform(-20, -5, 40_000))
    updates[::50] = 0
    updates[1::50] = weights[1::50].half().double().abs().log2().floor().exp2() * 2.0**-11  # ties
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        yield weights.to(dtype), updates.to(dtype)
    every = edges()
    yield every.repeat(len(every)), every.repeat_interleave(len(every))
