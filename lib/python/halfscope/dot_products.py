"""Dot products as several machines add them up, beside the exact sum, for notebooks and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from halfscope import dot

# Models of `halfscope list orders`, by what a reader calls them.
GENERATIONS = {
    "V100": "tensor_core(volta)",
    "T4": "tensor_core(turing)",
    "A100": "tensor_core(ampere)",
    "L40S": "tensor_core(ada)",
    "H100": "tensor_core(hopper)",
    "B200": "tensor_core(blackwell)",
}
SUMS = {
    "FP16": "fp16_sequential",
    "FP16, chunks of 64": "fp16_chunked(64)",
    "FP32": "fp32_sequential",
    **{name: GENERATIONS[name] for name in ("V100", "H100")},
}
LENGTHS = tuple(2**k for k in range(4, 17))


def large_and_small() -> tuple[np.ndarray, np.ndarray, float]:
    """a, b and start of a dot product that tells the generations apart.

    2^23 - 2^23 - 1/2 - 1/4 - 1/8: how much of the small terms is left depends on the bits that are kept below the
    largest. (4,), (4,)
    """
    a, b = np.array([[-4096, 1, 1, 1], [2048, -0.5, -0.25, -0.125]], np.float16)
    return a, b, 2.0**23


def random_factors(terms: int, seed: int = 0, signs: str = "both") -> tuple[np.ndarray, np.ndarray]:
    """Two vectors of float16: standard normal, or their magnitudes where `signs` is "positive". (terms,), (terms,)"""
    a, b = np.random.default_rng(seed).standard_normal((2, terms)).astype(np.float16)
    return (np.abs(a), np.abs(b)) if signs == "positive" else (a, b)


def exact_dot(a: np.ndarray, b: np.ndarray, start: float = 0.0) -> float:
    """start + the sum of a[k] b[k], exact but for one last rounding to float64; a and b are float16."""
    products = np.asarray(a, np.float16).astype(np.float64) * np.asarray(b, np.float16).astype(np.float64)
    return math.fsum([start, *products.tolist()])


def compare(a: np.ndarray, b: np.ndarray, start: float = 0.0, models: dict[str, str] | None = None) -> pd.DataFrame:
    """One dot product on every machine of `models`, GENERATIONS unless given, and exactly.

    A row per machine: model; result; bits, of the result as FP32; error, the result less the exact sum.
    """
    truth = exact_dot(a, b, start)
    rows = []
    for name, model in (GENERATIONS if models is None else models).items():
        result = dot(a, b, order=model, start=start)
        rows.append([name, model, result, _bits(result), result - truth])
    rows.append(["exact", "", truth, _bits(truth) if float(np.float32(truth)) == truth else "not in FP32", 0.0])
    return pd.DataFrame(rows, columns=["machine", "model", "result", "bits", "error"]).set_index("machine")


def errors_by_length(models: dict[str, str] | None = None, lengths: Sequence[int] = LENGTHS) -> pd.DataFrame:
    """Relative error of a dot product of positive terms, by its number of terms (index) and machine (columns).

    1 where the sum overflows. models: SUMS unless given.
    """
    rows = []
    for terms in lengths:
        a, b = random_factors(terms, seed=terms, signs="positive")
        truth = exact_dot(a, b)
        results = [dot(a, b, order=model) for model in (SUMS if models is None else models).values()]
        rows.append([min(abs(result - truth) / truth, 1.0) for result in results])
    return pd.DataFrame(rows, index=pd.Index(lengths, name="terms"), columns=list(SUMS if models is None else models))


def error_samples(terms: int = 256, count: int = 400, signs: str = "both") -> pd.DataFrame:
    """Errors of `count` random dot products (rows) on every generation (columns), in units of 2^-24 sum |a b|."""
    rows = []
    for seed in range(count):
        a, b = random_factors(terms, seed, signs)
        truth, size = exact_dot(a, b), exact_dot(np.abs(a), np.abs(b))
        rows.append([(dot(a, b, order=model) - truth) / size * 2.0**24 for model in GENERATIONS.values()])
    return pd.DataFrame(rows, columns=list(GENERATIONS)).rename_axis("product")


def _bits(value: float) -> str:
    return f"0x{np.float32(value).view(np.uint32):08x}"
