"""Sums over a tensor and the one that it should be are NumPy's, whatever the types, strides and special numbers."""

from __future__ import annotations

import random

import numpy
import pytest

torch = pytest.importorskip("torch")

from halfscope.torch.tensors.distance import distance_sums
from halfscope.torch.tensors.elements import Unreadable

pytestmark = pytest.mark.torch
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def drawn(draw: random.Random, shape: list[int]) -> torch.Tensor:
    """Numbers of any type and strides, some of them 0, infinite or NaN."""
    tensor = torch.randn([2 * size for size in shape]) * 2.0 ** draw.randint(-12, 12)
    tensor[torch.rand(tensor.shape) < 0.2] = 0
    if draw.random() < 0.5:
        tensor[torch.rand(tensor.shape) < 0.1] = draw.choice([numpy.inf, -numpy.inf, numpy.nan])
    tensor = tensor.to(draw.choice(TYPES))
    tensor = tensor[tuple(slice(None, None, 2) if draw.random() < 0.5 else slice(size) for size in shape)]
    return torch._neg_view(tensor) if draw.random() < 0.3 else tensor


@pytest.mark.parametrize("seed", range(200))
def test_sums_are_those_of_numpy(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    shape = [draw.randint(0, 9) for _ in range(draw.randint(0, 3))]
    found, expected = drawn(draw, shape), drawn(draw, shape)
    one, other = (tensor.resolve_neg().double().numpy().reshape(-1) for tensor in (found, expected))
    finite = numpy.isfinite(other)
    with numpy.errstate(invalid="ignore"):
        square = numpy.sum((one[finite] - other[finite]) ** 2)
        differences = numpy.abs(one - other)[finite & numpy.isfinite(one)]
        products = one[finite] * other[finite]
    sums = distance_sums(found, expected)
    assert sums.squared_error == pytest.approx(square, rel=1e-12, nan_ok=True)
    assert sums.squared_size == pytest.approx(numpy.sum(other[finite] ** 2), rel=1e-12)
    assert sums.squared_found == pytest.approx(numpy.sum(one[finite] ** 2), rel=1e-12, nan_ok=True)
    if numpy.isfinite(one[finite]).all():
        assert sums.product == pytest.approx(products.sum(), rel=1e-12, abs=1e-12 * numpy.abs(products).sum())
    assert sums.largest_error == max(differences, default=0.0)
    same = (one == other) | (numpy.isnan(one) & numpy.isnan(other))
    assert sums.strayed == numpy.sum(~finite & ~same)
    assert sums.spoiled == numpy.sum(~numpy.isfinite(one) & finite)
    assert sums.moved == numpy.sum(other != 0)
    assert sums.still == numpy.sum((other != 0) & (one == 0))


def test_a_tensor_without_memory_is_refused() -> None:
    with pytest.raises(Unreadable, match="meta"):
        distance_sums(torch.ones(3, device="meta"), torch.ones(3))


def test_tensors_that_differ_in_size_are_refused() -> None:
    with pytest.raises(ValueError, match="distance_sums"):
        distance_sums(torch.ones(3), torch.ones(4))
