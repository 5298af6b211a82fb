"""Times `halfscope.encode` to block formats beside torchao's quantization on a CPU, in turn, and compares the codes.

usage: bench_blocks.py [ROUNDS] [THREADS]

torchao (pip install torchao) quantizes by PyTorch's operations, step by step. The matrix of 512 x 1024 standard normal
numbers lies in the cache. Both are asked for codes and scales; torchao packs two codes of FP4 in a byte, and so does
halfscope here.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from halfscope._core import set_thread_count
from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3
from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_mx
from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize, per_tensor_amax_to_scale

import halfscope

SHAPE = (512, 1024)
Quantizer = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]  # array to scales and codes


class Pair(NamedTuple):
    """The same format by both."""

    ours: Quantizer
    theirs: Quantizer


def by_halfscope(form: str) -> Quantizer:
    def quantize(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        encoded = halfscope.encode(values, form)
        is_fp4 = form.startswith(("mxfp4", "nvfp4"))
        return encoded.scales, encoded.packed() if is_fp4 else encoded.codes

    return quantize


def by_torchao(element: torch.dtype | str, mode: ScaleCalculationMode) -> Quantizer:
    return lambda values: to_mx(values, element, 32, mode)


def nvfp4_by_torchao(values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return nvfp4_quantize(values, 16, per_tensor_amax_to_scale(values.abs().max()))


RCEIL, FLOOR = ScaleCalculationMode.RCEIL, ScaleCalculationMode.FLOOR
FORMATS = {
    "mxfp8_e4m3": Pair(by_halfscope("mxfp8_e4m3"), by_torchao(torch.float8_e4m3fn, RCEIL)),
    "mxfp8_e4m3/floor": Pair(by_halfscope("mxfp8_e4m3/floor"), by_torchao(torch.float8_e4m3fn, FLOOR)),
    "mxfp6_e2m3": Pair(by_halfscope("mxfp6_e2m3"), by_torchao(DTYPE_FP6_E2M3, RCEIL)),
    "mxfp4": Pair(by_halfscope("mxfp4"), by_torchao(torch.float4_e2m1fn_x2, RCEIL)),
    "nvfp4/torchao": Pair(by_halfscope("nvfp4/torchao"), nvfp4_by_torchao),
}


def median_seconds(pair: Pair, values: torch.Tensor, rounds: int) -> list[float]:
    """Seconds of ours and of theirs, called in turn."""
    times: list[list[float]] = [[], []]
    for turn in range(rounds + 1):
        for quantize, found in zip(pair, times):
            started = time.perf_counter()
            quantize(values)
            if turn:  # the first turn fills caches
                found.append(time.perf_counter() - started)
    return [statistics.median(found) for found in times]


def differing(pair: Pair, values: torch.Tensor) -> int:
    """Bytes of scales and codes that differ."""
    return sum(
        int((ours.view(torch.uint8) != theirs.view(torch.uint8)).sum())
        for ours, theirs in zip(pair.ours(values), pair.theirs(values))
    )


def main(arguments: list[str]) -> int:
    rounds = int(arguments[0]) if arguments else 15
    torch.set_num_threads(int(arguments[1]) if len(arguments) > 1 else 1)
    set_thread_count(torch.get_num_threads())
    values = torch.randn(SHAPE, generator=torch.Generator().manual_seed(0))
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, {rounds} rounds in turn")
    for name, pair in FORMATS.items():
        ours, theirs = median_seconds(pair, values, rounds)
        print(
            f"{name:18} halfscope {1e3 * ours:7.2f} ms  torchao {1e3 * theirs:7.2f} ms  {theirs / ours:5.1f} times"
            f"  {differing(pair, values)} bytes differ"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
