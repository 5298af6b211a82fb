#!/usr/bin/env python3
"""Constants of a tensor core, from its own dot products: terms a step, bits kept, and how a step's sum is rounded.

usage: characterise.py [--order ORDER | --cuda] [--input fp16|bf16|fp8_e4m3|fp8_e5m2]

--order ORDER  one of `halfscope list orders`, such as "tensor_core(hopper)"
--cuda         the GPU's, by PyTorch's products with FP32 results; fp16 and bf16 alone
--input        format of the operands, fp16 by default

The exponent that a zero counts as does not show in these sums. The probes are those of Fasi, Higham, Mikaitis and
Pranesh (2021): powers of two of which the sum keeps some. Terms are taken to ascend along K; a library that reorders
them shows constants of its order.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

LENGTH = 128  # terms of a probe; a step has 64 at most
Term = tuple[float, int]  # a factor near 1, and the exponent of two that it is multiplied by
Dot = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Input:
    """Exponents of two: the least of a factor, and the largest product of a probe."""

    least: int
    top: int  # that FP16 results hold too, unless too few binades were left for the probes


INPUTS = {"fp16": Input(-14, 14), "bf16": Input(-30, 14), "fp8_e4m3": Input(-6, 16), "fp8_e5m2": Input(-14, 14)}


@dataclass(frozen=True)
class Constants:
    """A step's: products; bits below its largest exponent, None where every bit is kept; and its result's."""

    products: int
    fraction_bits: int | None
    cut: str  # "toward_zero", "down" or "nearest"; "exact" where every bit is kept
    result_bits: int  # kept of the fraction
    rounding: str  # "toward_zero" or "nearest"; "unseen" where a step keeps no more than its result

    def __str__(self) -> str:
        kept = "every bit" if self.fraction_bits is None else f"{self.fraction_bits} bits, cut {self.cut}"
        products = f"{'at most ' if self.products == 2 else ''}{self.products} products"
        return f"{products} a step; {kept}; results of {self.result_bits} fraction bits, rounded {self.rounding}"


class Probe:
    """Dot products of a few powers of two among zeros."""

    def __init__(self, dot: Dot, input: Input) -> None:
        self._dot, self._input = dot, input
        self.top = input.top
        self.depth = self.top - 2 * input.least  # binades between the largest and the smallest product

    def sum(self, terms: Sequence[Term], places: Sequence[int] | None = None) -> float:
        """places: those of the terms along K; the first ones by default."""
        a, b = np.zeros(LENGTH, np.float32), np.zeros(LENGTH, np.float32)
        for place, (factor, exponent) in zip(places or range(len(terms)), terms):
            first = exponent // 2
            a[place], b[place] = factor * 2.0**first, 2.0 ** (exponent - first)
        return float(self._dot(a, b))

    def rest(self, factor: float, below: int) -> float:
        """The part that a step keeps of factor 2^-below beside 1 and -1, in units of 2^-below."""
        terms = [(1.0, self.top), (factor, self.top - below), (-1.0, self.top)]
        return self.sum(terms) / 2.0 ** (self.top - below)

    def beside_one(self, terms: Sequence[Term]) -> float:
        """1 and factors of 2^-below, (factor, below) each."""
        return self.sum([(1.0, self.top), *((factor, self.top - below) for factor, below in terms)]) / 2.0**self.top


def constants_of(dot: Dot, input: Input) -> Constants:
    """dot(a, b) of two FP32 arrays of LENGTH numbers of the input's format."""
    probe = Probe(dot, input)
    kept = [below for below in range(1, probe.depth) if probe.rest(1.0, below) != 0]
    bits = max(kept, default=0)
    is_exact = bits == probe.depth - 1
    result_bits = max((below for below in range(1, probe.depth) if probe.beside_one([(1.0, below)]) > 1), default=0)
    return Constants(
        products=_products(probe, is_exact, 2 + (result_bits if is_exact else bits)),
        fraction_bits=None if is_exact else bits,
        cut="exact" if is_exact else _cut(probe, bits),
        result_bits=result_bits,
        rounding=_rounding(probe, result_bits, bits),
    )


def _products(probe: Probe, is_exact: bool, lost: int) -> int:
    """The first place along K that belongs to another step than the first two; lost: binades after which a term goes.

    A small term survives a large pair in the step before; between the two of a pair a result's rounding takes it.
    """
    large, small = (1.0, probe.top), (1.0, probe.top - lost)
    for place in range(2, LENGTH):
        if is_exact:
            if probe.sum([large, small, (-1.0, probe.top)], [0, 1, place]) == 0:
                return place
        elif probe.sum([large, (-1.0, probe.top), small], [0, 1, place]) != 0:
            return place
    return LENGTH


def _cut(probe: Probe, bits: int) -> str:
    up, down = probe.rest(1.5, bits), probe.rest(-1.5, bits)
    if up > 1:
        return "nearest"
    return "down" if down < -1 else "toward_zero"


def _rounding(probe: Probe, result_bits: int, bits: int) -> str:
    """By three quarters of the result's last place; by half of one behind an odd number where no bit more is kept."""
    if bits >= result_bits + 2:
        tail = [(1.0, result_bits + 1), (1.0, result_bits + 2)]
        return "nearest" if probe.beside_one(tail) > 1 else "toward_zero"
    if bits == result_bits + 1:
        odd = [(1.0, result_bits), (1.0, result_bits + 1)]
        return "nearest" if probe.beside_one(odd) > 1 + 2.0**-result_bits else "toward_zero"
    return "unseen"


def order_dot(order: str) -> Dot:
    import halfscope  # a GPU's own products need no more than PyTorch

    return lambda a, b: halfscope.dot(a, b, order=order)


def cuda_dot(name: str) -> Dot:
    """A row of a product of 16 x LENGTH and LENGTH x 16 matrices. Raises RuntimeError without PyTorch or a GPU."""
    try:
        import torch
    except ImportError:
        raise RuntimeError("--cuda needs PyTorch; --order asks an order of a GPU") from None
    if not torch.cuda.is_available():
        raise RuntimeError("--cuda: PyTorch sees no GPU here; --order asks an order of one")
    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}[name]

    def dot(a: np.ndarray, b: np.ndarray) -> float:
        rows = torch.from_numpy(a).to("cuda", dtype).expand(16, -1).contiguous()
        columns = torch.from_numpy(b).to("cuda", dtype)[:, None].expand(-1, 16).contiguous()
        return float(torch.mm(rows, columns, out_dtype=torch.float32)[0, 0])

    return dot


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--order", default="tensor_core(hopper)")
    source.add_argument("--cuda", action="store_true")
    parser.add_argument("--input", choices=INPUTS, default="fp16")
    options = parser.parse_args(arguments)
    if options.cuda and options.input not in ("fp16", "bf16"):
        parser.error("--cuda probes fp16 and bf16; PyTorch's FP8 products have scales of their own")
    try:
        dot = cuda_dot(options.input) if options.cuda else order_dot(options.order)
        print(constants_of(dot, INPUTS[options.input]))
    except (RuntimeError, ValueError) as problem:
        print(f"characterise: {problem}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
