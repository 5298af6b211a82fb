"""_core.gather_matmul beside halfscope.dot of gathered rows: the products of a convolution."""

from __future__ import annotations

import numpy as np
import pytest

import halfscope
from dlpack import bfloat16
from halfscope import _core

gather_matmul = _core.gather_matmul
MODELS = ["fp32_fused", "fp16_sequential", "fp16_fused", "fp16_chunked(3)", "tensor_core(hopper)", "fp16_pairwise"]
MODELS += ["fp32_kahan", "bf16_tensor_core(ampere)"]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def bits(values: object) -> np.ndarray:
    return np.asarray(values, np.float32).view(np.uint32)


def dots(a: np.ndarray, b: np.ndarray, model: str) -> np.ndarray:
    sums = [halfscope.dot(row, column, order=model) for row in a for column in b.T]
    return np.float32(sums).reshape(len(a), b.shape[1])


def gathered(data: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    return data.ravel()[rows[:, None] + columns]


def offsets(*axes: tuple[int, int]) -> np.ndarray:
    """Offset of every element of a grid: axes are (extent, stride)."""
    grids = [np.arange(extent, dtype=np.int32) * stride for extent, stride in axes]
    return np.ravel(sum(np.ix_(*grids))).astype(np.int32)


def patch_offsets(images: np.ndarray, kernel: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of the patches' corners and of a patch's elements in padded images (batch, channels, height, width)."""
    batch, channels, height, width = images.shape
    down, across = kernel
    plane = height * width
    corners = offsets((batch, channels * plane), (height - down + 1, width), (width - across + 1, 1))
    return corners, offsets((channels, plane), (down, width), (across, 1))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 0, 2), (0, 4, 2), (4, 5, 0), (5, 31, 1), (7, 257, 9), (33, 70, 65)])
def test_each_element_is_the_dot_of_gathered_elements(shape: tuple[int, int, int], model: str) -> None:
    m, k, n = shape
    random = np.random.default_rng(m + k)
    rows, columns = (random.integers(0, 200, extent).astype(np.int32) for extent in (m, k))
    data, b = normal(20, 20), normal(k, n, seed=1)
    product = gather_matmul(data, rows, columns, b, order=model)
    assert product.shape == (m, n) and product.dtype == np.float32
    assert (bits(product) == bits(dots(gathered(data, rows, columns), b, model))).all()


@pytest.mark.parametrize("model", MODELS)
def test_a_convolution_and_its_weight_gradient(model: str) -> None:
    images, weight = normal(2, 3, 7, 8), normal(4, 3, 3, 2, seed=1)
    corners, elements = patch_offsets(images, (3, 2))
    output = gather_matmul(images, corners, elements, weight.reshape(4, -1).T.copy(), order=model)
    patches = np.lib.stride_tricks.sliding_window_view(images, (3, 2), (2, 3)).transpose(0, 2, 3, 1, 4, 5)
    patches = patches.reshape(2 * 5 * 7, 3 * 3 * 2)
    assert (bits(output) == bits(dots(patches, weight.reshape(4, -1).T, model))).all()
    gradient = normal(len(corners), 4, seed=2)
    weight_gradient = gather_matmul(images, elements, corners, gradient, order=model)
    assert (bits(weight_gradient) == bits(dots(patches.T, gradient, model))).all()


def test_no_product_depends_on_the_number_of_threads() -> None:
    images = normal(4, 16, 18, 18)
    corners, elements = patch_offsets(images, (3, 3))
    b = normal(len(elements), 32, seed=1)
    for model in MODELS:
        one = gather_matmul(images, corners, elements, b, order=model)
        try:
            _core.set_thread_count(2)
            assert (bits(gather_matmul(images, corners, elements, b, order=model)) == bits(one)).all()
        finally:
            _core.set_thread_count(1)


def test_other_strides_and_types_are_read_as_their_copies() -> None:
    rows, columns = np.int32([0, 7, 3]), np.int32([0, 16, 2, 5])
    data, b = normal(6, 8), normal(4, 3, seed=1)
    product = gather_matmul(data.T, rows, columns, b.T.copy().T)
    assert (product == gather_matmul(data.T.copy(), rows, columns, b)).all()
    half, brain = data.astype(np.float16), halfscope.round(b, "bf16")
    product = gather_matmul(half, rows, columns, bfloat16(brain))
    assert (product == gather_matmul(half.astype(np.float32), rows, columns, brain)).all()


def test_the_first_and_the_last_element_are_in_reach_and_no_other() -> None:
    data, b = normal(10), np.ones((2, 1), np.float32)
    ends = gather_matmul(data, np.int32([0]), np.int32([0, 9]), b)
    assert ends[0, 0] == halfscope.dot(data[[0, 9]], b[:, 0])
    for rows, columns in [([0, 1], [0, 9]), ([0], [0, 10]), ([10], [0, 0]), ([-1], [1, 2]), ([1], [-1, 2])]:
        with pytest.raises(ValueError, match="^gather_matmul: rows of offsets .* data has 10 elements") as raised:
            gather_matmul(data, np.int32(rows), np.int32(columns), b)
        assert "\n" not in str(raised.value)
    most = np.int32([2**31 - 1])
    with pytest.raises(ValueError, match="rows of offsets 2147483647 to 2147483647 and columns of 2147483647"):
        gather_matmul(data, most, most, b[:1])
    nothing = np.int32([])
    assert gather_matmul(data[:0], nothing, most, b[:1]).shape == (0, 1)
    assert gather_matmul(data[:0], most, nothing, b[:0]).tolist() == [[0]]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rows": [0]}, TypeError, "^gather_matmul: rows: cannot read list; give an int32 array"),
        ({"rows": np.int64([0])}, TypeError, "^gather_matmul: rows: offsets of another type; give int32"),
        ({"columns": np.float32([0, 1])}, TypeError, "^gather_matmul: columns: offsets of another type; give int32"),
        ({"rows": np.int32([[0]])}, ValueError, "^gather_matmul: rows: give a contiguous array of one axis"),
        ({"columns": np.arange(4, dtype=np.int32)[::2]}, ValueError, "^gather_matmul: columns: give a contiguous"),
        ({"b": np.ones((3, 1), np.float32)}, ValueError, r"give \(k, n\), for 2 columns k = 2"),
        ({"b": np.ones(2, np.float32)}, ValueError, "^gather_matmul: b of 1 axes"),
        ({"data": np.arange(4)}, TypeError, "^gather_matmul: data: an array of int64"),
        ({"order": "fp17_fused"}, ValueError, "unknown order"),
        ({"order": "cublas"}, ValueError, "choose an order that has a name"),
    ],
)
def test_a_clear_error(change: dict, error: type, message: str) -> None:
    right = {"data": normal(4), "rows": np.int32([0]), "columns": np.int32([0, 1]), "b": normal(2, 1)}
    with pytest.raises(error, match=message) as raised:
        gather_matmul(**right | change)
    assert "\n" not in str(raised.value)
