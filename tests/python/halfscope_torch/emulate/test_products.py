"""_core.gather_matmul of PyTorch's tensors, beside PyTorch's of whole numbers, which are exact."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import halfscope
from halfscope import _core

pytestmark = pytest.mark.torch


def offsets(*axes: tuple[int, int]) -> torch.Tensor:
    result = torch.zeros(1, dtype=torch.int32)
    for extent, stride in axes:
        result = (result[:, None] + torch.arange(extent, dtype=torch.int32) * stride).reshape(-1)
    return result


def whole_numbers(*shape: int) -> torch.Tensor:
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(sum(shape))).float()


def test_a_convolution_and_its_gradients() -> None:
    images, weight = whole_numbers(2, 3, 6, 7), whole_numbers(5, 3, 3, 3)
    expected = torch.nn.functional.conv2d(images.requires_grad_(), weight.requires_grad_())
    gradient = whole_numbers(*expected.shape)
    expected.backward(gradient)

    data = images.detach()
    corners, elements = offsets((2, 126), (4, 7), (5, 1)), offsets((3, 42), (3, 7), (3, 1))
    output = _core.gather_matmul(data, corners, elements, weight.detach().reshape(5, -1).t())
    assert isinstance(output, torch.Tensor) and output.dtype == torch.float32
    assert torch.equal(output.reshape(2, 4, 5, 5).permute(0, 3, 1, 2), expected)

    by_position = gradient.permute(0, 2, 3, 1).reshape(-1, 5)
    weight_gradient = _core.gather_matmul(data, elements, corners, by_position)
    assert torch.equal(weight_gradient.t().reshape(weight.shape), weight.grad)

    padded = torch.nn.functional.pad(gradient, (2, 2, 2, 2))  # (2, 5, 8, 9)
    corners, elements = offsets((2, 360), (6, 9), (7, 1)), offsets((5, 72), (3, 9), (3, 1))
    turned = weight.detach().flip(2, 3).permute(0, 2, 3, 1).reshape(-1, 3)
    input_gradient = _core.gather_matmul(padded, corners, elements, turned)
    assert torch.equal(input_gradient.reshape(2, 6, 7, 3).permute(0, 3, 1, 2), images.grad)


def test_float16_tensors_are_read_as_they_are() -> None:
    data, b = whole_numbers(8).half(), whole_numbers(2, 2).half()
    rows, columns = torch.tensor([0, 4], dtype=torch.int32), torch.tensor([1, 3], dtype=torch.int32)
    product = _core.gather_matmul(data, rows, columns, b, order="fp16_sequential")
    assert torch.equal(product, data.float()[[1, 3, 5, 7]].reshape(2, 2) @ b.float())


def test_heads_of_attention_are_views() -> None:
    queries, keys = whole_numbers(2, 6, 3, 8).transpose(1, 2), whole_numbers(2, 5, 3, 8).transpose(1, 2)
    scores = halfscope.matmul(queries, keys.transpose(2, 3), order="tensor_core(hopper)")
    assert isinstance(scores, torch.Tensor)
    assert torch.equal(scores, queries @ keys.transpose(2, 3))
    assert torch.equal(halfscope.matmul(scores, keys), scores @ keys)
    bias = whole_numbers(2, 1, 1).expand(2, 4, 5)
    assert torch.equal(halfscope.matmul(bias, whole_numbers(3, 5).t()), bias @ whole_numbers(3, 5).t())
