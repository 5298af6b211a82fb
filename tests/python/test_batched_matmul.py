"""halfscope.matmul of arrays of matrices beside halfscope.dot, bit for bit, for every order."""

from __future__ import annotations

import resource
from collections.abc import Callable

import numpy as np
import pytest

import halfscope
from dlpack import bfloat16

MODELS = list(halfscope.list_orders().index)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def bits(values: object) -> np.ndarray:
    return np.asarray(values, np.float32).view(np.uint32)


def dots(a: np.ndarray, b: np.ndarray, model: str) -> np.ndarray:
    """(..., m, n), one `dot` after the other."""
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.empty((*shape, a.shape[-2], b.shape[-1]), np.float32)
    a, b = np.broadcast_to(a, (*shape, *a.shape[-2:])), np.broadcast_to(b, (*shape, *b.shape[-2:]))
    for index in np.ndindex(*result.shape):
        row, column = a[index[:-1]], b[(*index[:-2], slice(None), index[-1])]
        result[index] = halfscope.dot(row.copy(), column.copy(), order=model)
    return result


def heads(*shape: int, seed: int = 0) -> np.ndarray:
    """(batch, heads, time, width) as attention has them: a view of (batch, time, heads, width)."""
    batch, count, steps, width = shape
    return normal(batch, steps, count, width, seed=seed).transpose(0, 2, 1, 3)


PAIRS: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    "plain": lambda: (normal(3, 5, 18), normal(3, 18, 7, seed=1)),
    "of one row": lambda: (normal(3, 1, 18), normal(3, 18, 7, seed=1)),
    "of one column": lambda: (normal(3, 5, 18), normal(3, 18, 1, seed=1)),
    "transposed a": lambda: (normal(3, 18, 5).swapaxes(1, 2), normal(3, 18, 7, seed=1)),
    "transposed b": lambda: (normal(3, 5, 18), normal(3, 37, 18, seed=1).swapaxes(1, 2)),
    "both transposed": lambda: (normal(3, 18, 5).swapaxes(1, 2), normal(3, 35, 18, seed=1).swapaxes(1, 2)),
    "attention's scores": lambda: (heads(2, 3, 6, 8), heads(2, 3, 6, 8, seed=1).swapaxes(2, 3)),
    "attention's values": lambda: (normal(2, 3, 6, 6), heads(2, 3, 6, 8, seed=1)),
    "one b": lambda: (normal(3, 5, 18), normal(1, 18, 7, seed=1)),
    "one a": lambda: (normal(5, 18), normal(3, 18, 7, seed=1)),
    "both broadcast": lambda: (normal(2, 1, 4, 9), normal(3, 9, 5, seed=1)),
    "parts of larger arrays": lambda: (normal(4, 8, 30)[::2, 1:6, 3:21], normal(2, 30, 9, seed=1)[:, 4:22, 2:]),
    "reversed matrices": lambda: (normal(3, 5, 18)[::-1], normal(3, 18, 7, seed=1)[::-1]),
    "reversed rows": lambda: (normal(3, 5, 18)[:, ::-1], normal(3, 18, 7, seed=1)[:, :, ::-1]),
    "every other element": lambda: (normal(3, 9, 36)[:, ::2, ::2], normal(3, 36, 14, seed=1)[:, ::2, ::2]),
    "repeated rows": lambda: (np.broadcast_to(normal(3, 1, 18), (3, 5, 18)), normal(3, 18, 7, seed=1)),
    "rows of a over one b": lambda: (normal(4, 5, 6, 9)[:, 1:4], normal(9, 5, seed=1)),
    "no products": lambda: (normal(0, 5, 18), normal(0, 18, 7, seed=1)),
    "no b": lambda: (normal(5, 18), normal(0, 18, 7, seed=1)),
    "no rows": lambda: (normal(3, 0, 18), normal(3, 18, 7, seed=1)),
    "no columns": lambda: (normal(3, 5, 18), normal(3, 18, 0, seed=1)),
    "no terms": lambda: (normal(3, 5, 0), normal(3, 0, 7, seed=1)),
}


@pytest.mark.parametrize("model", [*MODELS, "bf16_tensor_core(ampere)", "e5m7_sequential", "fp16_chunked(3)"])
def test_each_element_is_the_dot_of_its_row_and_column(model: str) -> None:
    for name, pair in PAIRS.items():
        a, b = pair()
        product, expected = halfscope.matmul(a, b, order=model), dots(a, b, model)
        assert product.shape == expected.shape and product.dtype == np.float32, name
        assert (bits(product) == bits(expected)).all(), name


@pytest.mark.parametrize("model", MODELS)
def test_no_product_depends_on_the_number_of_threads(model: str) -> None:
    pairs = [(normal(20, 40, 33), normal(20, 33, 41, seed=1)), (heads(1, 2, 100, 90), normal(90, 130, seed=1))]
    for a, b in pairs:
        one = halfscope.matmul(a, b, order=model)
        try:
            halfscope._core.set_thread_count(2)
            assert (bits(halfscope.matmul(a, b, order=model)) == bits(one)).all()
        finally:
            halfscope._core.set_thread_count(1)


def test_a_vector_meets_every_matrix() -> None:
    vector, matrices = normal(9), normal(2, 3, 9, 4, seed=1)
    product = halfscope.matmul(vector, matrices)
    assert product.shape == (2, 3, 4)
    assert (bits(product) == bits(dots(vector[None], matrices, "fp32_fused")[:, :, 0])).all()


def test_other_types_are_widened() -> None:
    a, b = normal(3, 5, 18).astype(np.float16), halfscope.round(normal(3, 18, 7, seed=1), "bf16")
    product = halfscope.matmul(a, bfloat16(b), order="tensor_core(hopper)")
    assert (bits(product) == bits(halfscope.matmul(a.astype(np.float32), b, order="tensor_core(hopper)"))).all()


def peak_bytes() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("side", ["a", "b"])
def test_transposed_views_are_not_copied(side: str) -> None:
    """The array is as large as the process ever was, and at least 256 MB: a copy of it would show in the new peak."""
    vectors = max(2**26, peak_bytes() // 4) // 32
    if side == "a":
        a, b = np.ones((2, 16, vectors), np.float32).swapaxes(1, 2), np.ones((2, 16, 1), np.float32)
    else:
        a, b = np.ones((2, 1, 16), np.float32), np.ones((2, vectors, 16), np.float32).swapaxes(1, 2)
    before = peak_bytes()
    product = halfscope.matmul(a, b)
    assert peak_bytes() - before < max(a.nbytes, b.nbytes) // 4
    assert (product == 16).all()
