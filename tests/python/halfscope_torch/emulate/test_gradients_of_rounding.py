"""halfscope.round, matmul and sum of PyTorch tensors that need a gradient: passed straight through, or refused."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope


def leaf(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(5, 7).to(dtype).requires_grad_()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: halfscope.round(x, "fp16"), "^round: .*straight_through=True"),
        (lambda x: halfscope.round(2 * x, "fp16"), "^round: "),
        (lambda x: halfscope.matmul(x, x.detach().T), "^matmul: .*give tensor.detach()"),
        (lambda x: halfscope.matmul(x.detach(), x.T), "^matmul: "),
        (lambda x: halfscope.sum(x, 0), "^sum: "),
    ],
)
def test_a_gradient_is_not_lost_silently(call, words: str) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        call(leaf())
    assert "\n" not in str(raised.value)
    with torch.no_grad():
        assert not call(leaf()).requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_straight_through(dtype: torch.dtype) -> None:
    x = leaf(dtype)
    quantizer = "fp8_e5m2/stochastic"
    rounded = halfscope.round(x, quantizer, seed=3, step=4, straight_through=True)
    expected = halfscope.round(x.detach(), quantizer, seed=3, step=4)
    assert rounded.requires_grad and rounded.dtype is torch.float32 and torch.equal(rounded, expected)
    weights = torch.randn(5, 7)
    (rounded * weights).sum().backward()
    assert x.grad.dtype is dtype and torch.equal(x.grad, weights.to(dtype))


def test_without_a_gradient_it_is_rounding() -> None:
    x = leaf().detach()
    assert torch.equal(halfscope.round(x, "fp16", straight_through=True), x.half().float())


def test_a_network_trains_through_rounded_activations() -> None:
    torch.manual_seed(1)
    first, second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    inputs, before = torch.randn(64, 8), first.weight.detach().clone()
    losses = []
    for _ in range(50):
        hidden = halfscope.round(first(inputs).relu(), "fp8_e4m3", straight_through=True)
        loss = (second(hidden) - inputs[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0] and not torch.equal(first.weight, before)


def test_products_and_sums_are_tensors() -> None:
    a, b = torch.randn(6, 40), torch.randn(40, 3)
    product = halfscope.matmul(a, b, order="fp16_sequential")
    assert isinstance(product, torch.Tensor) and product.dtype is torch.float32
    assert float(product[2, 1]) == halfscope.dot(a[2], b[:, 1], order="fp16_sequential")
    sums = halfscope.sum(a.bfloat16(), 1, order="fp16_pairwise")
    assert isinstance(sums, torch.Tensor) and sums.shape == (6,)


def test_torch_is_not_imported() -> None:
    code = "import sys, numpy, halfscope; halfscope.round(numpy.zeros(3, 'f'), 'fp16'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
