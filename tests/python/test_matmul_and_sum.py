"""halfscope.matmul and halfscope.sum beside halfscope.dot, bit for bit, for every order."""

from __future__ import annotations

import mmap
import sys
import threading
import time

import numpy as np
import pytest

import halfscope
from arrays import RIGHT
from dlpack import bfloat16

MODELS = list(halfscope.list_orders().index)
OF_TERMS = [name for name, row in halfscope.list_orders().iterrows() if row["sums"]]
SHAPES = [(1, 1, 1), (3, 0, 2), (0, 4, 2), (5, 31, 1), (7, 257, 9), (33, 70, 65)]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def bits(values: object) -> np.ndarray:
    return np.asarray(values, np.float32).view(np.uint32)


def dots(a: np.ndarray, b: np.ndarray, model: str) -> np.ndarray:
    return np.float32([[halfscope.dot(row, column, order=model) for column in b.T] for row in a]).reshape(
        len(a), b.shape[1]
    )


@pytest.mark.parametrize("model", [*MODELS, "bf16_tensor_core(ampere)", "e5m7_sequential", "fp16_chunked(3)"])
def test_each_element_is_the_dot_of_its_row_and_column(model: str) -> None:
    for rows, depth, columns in SHAPES:
        a, b = normal(rows, depth), normal(depth, columns, seed=1)
        product = halfscope.matmul(a, b, order=model)
        assert product.shape == (rows, columns) and product.dtype == np.float32
        assert (bits(product) == bits(dots(a, b, model))).all()


@pytest.mark.parametrize("model", ["fp32_fused", "fp16_sequential", "fp16_pairwise", "tensor_core(hopper)"])
def test_no_product_depends_on_the_number_of_threads(model: str) -> None:
    a, b = normal(200, 300), normal(300, 150, seed=1)
    one = halfscope.matmul(a, b, order=model)
    try:
        halfscope._core.set_thread_count(3)
        assert (bits(halfscope.matmul(a, b, order=model)) == bits(one)).all()
    finally:
        halfscope._core.set_thread_count(1)
    assert (bits(one[:2, :3]) == bits(dots(a[:2], b[:, :3], model))).all()


def test_leading_axes_and_strides_of_products() -> None:
    a, b = normal(2, 5, 40), normal(40, 6, seed=1)
    product = halfscope.matmul(a, b)
    assert product.shape == (2, 5, 6)
    assert (product.reshape(10, 6) == halfscope.matmul(a.reshape(10, 40), b)).all()
    assert (halfscope.matmul(a[0, 0], b) == product[0, 0]).all()
    of_views = halfscope.matmul(a[:, ::2, ::-1], b.T.copy().T[::-1])
    assert (of_views == halfscope.matmul(a[:, ::2, ::-1].copy(), b[::-1].copy())).all()
    half, brain = a.astype(np.float16), halfscope.round(b, "bf16")
    assert (halfscope.matmul(half, bfloat16(brain)) == halfscope.matmul(half.astype(np.float32), brain)).all()


def untouched(*shape: int) -> np.ndarray:
    """Zeros in pages that the system makes where they are written: gigabytes that take no memory."""
    reserve_nothing = 0x4000  # MAP_NORESERVE, which Python has no name for
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | reserve_nothing
    return np.frombuffer(mmap.mmap(-1, 4 * int(np.prod(shape)), flags=flags), np.float32).reshape(shape)


def test_a_product_of_more_than_2_to_the_31_elements() -> None:
    a, b = untouched(2**22 + 3, 512), np.ones((512, 1), np.float32)
    a[0], a[2**22], a[-1] = 1, 2, np.arange(512)
    product = halfscope.matmul(a, b)
    assert np.flatnonzero(product).tolist() == [0, 2**22, 2**22 + 2]
    assert product[[0, 2**22, -1], 0].tolist() == [512, 1024, 511 * 256]


def test_the_right_factor_may_have_more_than_2_to_the_31_elements() -> None:
    a, b = np.ones((1, 2**16), np.float32), untouched(2**16, 2**15 + 65)
    b[0, 0], b[-1, -1] = 3, 5
    product = halfscope.matmul(a, b)
    assert np.flatnonzero(product).tolist() == [0, 2**15 + 64] and product[0, -1] == 5


def test_rows_of_more_than_2_to_the_31_elements_are_refused() -> None:
    with pytest.raises(ValueError, match="^matmul: rows of 2147483648 elements; give at most 2147483647$"):
        halfscope.matmul(untouched(1, 2**31), untouched(2**31, 1))


@pytest.mark.parametrize("model", OF_TERMS)
@pytest.mark.parametrize("shape", [(1,), (700,), (0, 3), (40, 3), (3, 70, 5), (2, 300, 20), (4, 1, 6, 33)])
def test_each_sum_is_the_dot_with_ones(shape: tuple[int, ...], model: str) -> None:
    values = normal(*shape)
    for axis in range(-len(shape), len(shape)):
        sums = halfscope.sum(values, axis, order=model)
        rows = np.moveaxis(values, axis, -1)
        ones = np.ones(shape[axis], np.float32)
        expected = [halfscope.dot(row, ones, order=model) for row in rows.reshape(sums.size, shape[axis])]
        assert sums.shape == rows.shape[:-1] and sums.dtype == np.float32
        assert (bits(sums).ravel() == bits(expected)).all()
    whole = halfscope.sum(values, order=model)
    assert type(whole) is float
    assert whole == halfscope.dot(values.ravel(), np.ones(values.size, np.float32), order=model)


@pytest.mark.parametrize("kind", RIGHT)
def test_every_kind_of_array_is_added_up(kind: str) -> None:
    array = RIGHT[kind]()
    copy = np.array(array, np.float32, order="C")
    assert halfscope.sum(array, order="fp16_pairwise") == halfscope.sum(copy, order="fp16_pairwise")
    for axis in range(copy.ndim):
        assert (halfscope.sum(array, axis) == halfscope.sum(copy, axis)).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a: halfscope.matmul(a, a), ValueError, r"matmul: shapes \(3, 4\) and \(3, 4\); give \(\.\.\., k\)"),
        (lambda a: halfscope.matmul(a, a[0]), ValueError, r"matmul: shapes \(3, 4\) and \(4\)"),
        (lambda a: halfscope.matmul(a[0, 0], a), ValueError, r"matmul: shapes \(\) and \(3, 4\)"),
        (lambda a: halfscope.matmul(a, a[None]), ValueError, r"matmul: shapes \(3, 4\) and \(1, 3, 4\); give"),
        (
            lambda a: halfscope.matmul(np.stack([a, a]), np.stack([a.T, a.T, a.T])),
            ValueError,
            r"matmul: shapes \(2, 3, 4\) and \(3, 4, 3\); give axes before the last two that are equal, 1 or missing",
        ),
        (lambda a: halfscope.matmul(a, a.T, order="fp17_fused"), ValueError, "unknown order"),
        (lambda a: halfscope.matmul(a, a.T, order="cublas"), ValueError, "choose an order that has a name"),
        (lambda a: halfscope.matmul(a, [1.0]), TypeError, "^matmul: b: cannot read list"),
        (lambda a: halfscope.matmul(a.astype(float), a), TypeError, "^matmul: a: an array of float64"),
        (lambda a: halfscope.sum(a, 2), ValueError, "^sum: axis 2 of an array of 2 axes"),
        (lambda a: halfscope.sum(a, -3), ValueError, "^sum: axis -3 of an array of 2 axes"),
        (lambda a: halfscope.sum(a, 0.5), TypeError, "'float' object cannot be interpreted as an integer"),
        (lambda a: halfscope.sum(a, 0, order="tensor_core(hopper)"), ValueError, "adds up matrix products"),
        (lambda a: halfscope.sum(a, order="fp32_fused"), ValueError, "adds up matrix products"),
        (lambda a: halfscope.sum(a.astype(int), 0), TypeError, "^sum: an array of int64"),
    ],
)
def test_a_clear_error(call, error: type, message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        call(normal(3, 4))
    assert "\n" not in str(raised.value)


def test_other_threads_go_on_meanwhile() -> None:
    """One thread multiplies or adds up until another has run.

    The interpreter takes its lock from no thread before an hour has passed: the other runs only if the call releases
    the lock. Where it does not, the first thread gives up after a minute, which no machine is too busy for.
    """
    a, terms = normal(30, 30), normal(600)
    before = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    try:
        for work in (lambda: halfscope.matmul(a, a, order="fp16_pairwise"), lambda: halfscope.sum(terms)):
            started, ran, meanwhile = threading.Event(), threading.Event(), []

            def call(work=work, started=started, ran=ran, meanwhile=meanwhile) -> None:
                end = time.monotonic() + 60
                started.set()
                while not ran.is_set() and time.monotonic() < end:
                    work()
                meanwhile.append(ran.is_set())

            thread = threading.Thread(target=call)
            thread.start()
            started.wait()
            ran.set()
            thread.join()
            assert meanwhile == [True]
    finally:
        sys.setswitchinterval(before)
