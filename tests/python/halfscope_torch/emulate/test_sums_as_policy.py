"""Orders of sums as a policy, beside sums of fractions and of doubles: reductions, split-K, gradients, cancellation."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import emulate

pytestmark = pytest.mark.torch


class Apply(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Weight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))

    def forward(self, factor: torch.Tensor) -> torch.Tensor:
        return self.weight * factor


def result(function: Callable, x: torch.Tensor, policy: str = "fp16", **options: Any) -> torch.Tensor:
    model = Apply(function)
    with emulate(model, policy, **options), torch.no_grad():
        return model(x)


def fp16(value: Fraction) -> Fraction:
    """Rounded by PyTorch's own cast of a double, once."""
    return Fraction(torch.tensor(float(value), dtype=torch.float64).half().item())


def sequential(values: torch.Tensor) -> Fraction:
    total = Fraction(0)
    for value in values.tolist():
        total = fp16(total + Fraction(value))
    return total


def test_a_sum_of_ones_stalls_at_2048() -> None:
    ones = torch.ones(4096)
    assert result(torch.sum, ones, sum_order="fp16_sequential").item() == 2048
    assert result(torch.mean, ones, sum_order="fp16_sequential").item() == 0.5
    assert result(torch.mean, ones).item() == 1
    assert result(torch.sum, ones, "fp32", sum_order="fp16_sequential").item() == 2048


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_those_of_fractions(seed: int) -> None:
    x = torch.randn(3, 200, generator=torch.Generator().manual_seed(seed)).half().float()
    found = result(lambda each: each.sum(-1), x, sum_order="fp16_sequential")
    assert [Fraction(value) for value in found.tolist()] == [sequential(row) for row in x]


def test_a_half_tensor_is_added_up_in_the_same_order() -> None:
    ones = torch.ones(4096).half()
    assert result(torch.sum, ones, sum_order="fp16_sequential").item() == 2048
    assert result(torch.sum, ones).item() == 4096


def test_a_rule_has_reductions_of_its_own() -> None:
    model = nn.Sequential(Apply(lambda x: x.sum(-1, keepdim=True)), Apply(lambda x: (x[0] * 0 + 1).expand(4096).sum()))
    with emulate(model, "fp16", exceptions={"1": {"sum_order": "fp16_sequential"}}) as _, torch.no_grad():
        assert model(torch.ones(1, 8)).item() == 2048
    with emulate(model, "fp16", exceptions={"0": {"sum_order": "fp16_sequential"}}) as _, torch.no_grad():
        assert model(torch.ones(1, 8)).item() == 4096


def test_the_gradient_of_a_bias_is_summed_in_the_policys_order() -> None:
    layer = nn.Linear(1, 1)
    with emulate(layer, "fp16", sum_order="fp16_sequential"):
        layer(torch.ones(4096, 1)).sum().backward()
    assert layer.bias.grad is not None and layer.bias.grad.item() == 2048


def split_case() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.ones(1, 4096), torch.cat([torch.full((2048,), 32.0), torch.full((2048,), -31.0)])[:, None]


def test_split_k_overflows_where_the_whole_sum_does_not() -> None:
    x, w = split_case()
    assert result(lambda each: each @ w, x).item() == 2048
    assert result(lambda each: each @ w, x, order="split_k(2, fp16)").item() == float("inf")
    assert result(lambda each: each @ w, x, order="split_k(1, fp16)").item() == 2048


def test_split_k_loses_what_cancels() -> None:
    x = torch.tensor([[1, 0.125, 1, 0.125]])
    w = torch.tensor([[99840.0], [1280.0], [-99840.0], [-480.0]])  # 100000 - 99900
    assert result(lambda each: each @ w, x, "bf16").item() == 100
    assert result(lambda each: each @ w, x, "bf16", order="split_k(2, bf16)").item() == 0


@pytest.mark.parametrize("parts", [1, 3, 7, 50, 64])
def test_split_sums_are_those_of_doubles(parts: int) -> None:
    generator = torch.Generator().manual_seed(parts)
    a, b = (torch.randn(*shape, generator=generator).bfloat16().float() for shape in ((4, 50), (50, 6)))
    found = result(lambda each: each @ b, a, "bf16", order=f"split_k({parts}, bf16)/fp32_sequential")
    length = -(-50 // parts)
    total = torch.zeros(4, 6, dtype=torch.float64)
    for first in range(0, 50, length):
        part = a[:, first : first + length].double() @ b[first : first + length].double()
        total += part.float().bfloat16().double()
    # Parts of FP32 sums lie on the same side of a tie of BF16 as the exact ones, but for numbers within 2^-20 of it.
    close = (found.double() - total).abs() <= 2.0**-8 * total.abs()
    assert close.all() and (found == total.float().bfloat16().float()).double().mean() > 0.9


def test_a_convolution_is_not_split() -> None:
    torch.manual_seed(0)
    layer, x = nn.Conv2d(8, 4, 3), torch.randn(1, 8, 5, 5)
    with torch.no_grad():
        with emulate(layer, "bf16", order="split_k(4, bf16)") as _:
            split = layer(x)
        with emulate(layer, "bf16") as _:
            assert torch.equal(split, layer(x))


def accumulated(gradients: torch.Tensor, quantizer: str | None) -> tuple[float, float]:
    model = Weight()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp32", optimizer=optimizer, gradient_sum=quantizer) as emulated:
        for gradient in gradients:
            model(gradient).sum().backward()
        optimizer.step()
    assert model.weight.grad is not None
    return model.weight.grad.item(), emulated.lost_additions


def test_gradients_add_up_to_256_in_bf16() -> None:
    assert accumulated(torch.ones(300), "bf16") == (256, 44 / 299)
    assert accumulated(torch.ones(300), "fp16") == (300, 0)
    assert accumulated(torch.ones(300), None) == (300, 0)


@pytest.mark.parametrize("seed", range(5))
def test_accumulated_gradients_are_those_of_fractions(seed: int) -> None:
    gradients = torch.randn(64, generator=torch.Generator().manual_seed(seed)).half().float()
    assert Fraction(accumulated(gradients, "fp16")[0]) == sequential(gradients)


def test_cancellation_is_that_of_doubles() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(32, 16), nn.Conv1d(16, 4, 1)), torch.randn(5, 16, 32)
    model[0] = nn.Linear(32, 7)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16", optimizer=optimizer) as emulated:
        model(x).sum().backward()
        optimizer.step()
    found = emulated.compare_to("fp32", steps=[1]).cancellations()
    weight, bias = model[0].weight.double().detach(), model[0].bias.double().detach()
    terms = (x.double().abs() @ weight.abs().T + bias.abs()).sum()
    sums = (x.double() @ weight.T + bias).abs().sum()
    assert abs(found["forward", "0"] - float(terms / sums)) < 1e-5
    assert {region for region, _ in found} == {"forward", "backward"} and min(found.values()) >= 1
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_the_product_that_split_k_hurts_is_first() -> None:
    x, w = split_case()
    model = nn.Sequential(nn.Linear(4096, 1, bias=False), nn.Linear(1, 1, bias=False))
    model[0].weight.data.copy_(w.T)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16", optimizer=optimizer) as emulated:
        model(x).sum().backward()
        optimizer.step()
    assert next(iter(emulated.compare_to().cancellations().items())) == (("forward", "0"), 63.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sum_order": "fp16_sequentia"}, "did you mean 'fp16_sequential'"),
        ({"sum_order": "fp16_fused"}, "sum_order = 'fp16_fused'"),
        ({"order": "split_k(0, fp16)"}, "give 1 or more parts"),
        ({"order": "split_k(2, fp17)"}, "fp17"),
        ({"gradient_sum": "fp17"}, "fp17"),
        ({"exceptions": {"*": {"sum_order": "fp99"}}}, "sum_order = 'fp99'"),
    ],
)
def test_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        emulate(nn.Linear(1, 1), "fp16", **options)
