"""Causes of zeros of weight gradients: known answers by hand, and sums over the causes in whole models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.utils.checkpoint import checkpoint

import small_models
from halfscope.torch import Emulation, emulate

pytestmark = pytest.mark.torch


def trained(model: nn.Module, loss: Callable[[], torch.Tensor], **options: Any) -> Emulation:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16_mixed", optimizer=optimizer, zeros=True, **options) as emulated:
        loss().backward()
        optimizer.step()
    return emulated


def causes(emulated: Emulation, tensor: str) -> dict[str, int]:
    return {cause: count for cause, count in emulated.zeros()[tensor].causes.items() if count}


def linear(inputs: list[float], gradients: list[float], **options: Any) -> Emulation:
    """A layer whose inputs and whose outputs' gradients are given, for one sample."""
    model = nn.Linear(len(inputs), len(gradients))
    x, factors = torch.tensor([inputs]), torch.tensor([gradients])
    return trained(model, lambda: (model(x) * factors).sum(), **options)


def test_a_dead_unit_is_a_true_zero() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
    with torch.no_grad():
        model[0].bias.copy_(torch.tensor([-100.0, 100.0, 100.0]))
    emulated = trained(model, lambda: model(torch.ones(2, 4)).sum())
    assert causes(emulated, "0.weight") == {"true": 4}
    assert causes(emulated, "0.bias") == {"true": 1}
    assert causes(emulated, "2.weight") == {"true": 1}
    assert causes(emulated, "2.bias") == {}


def test_a_sample_that_is_missing_is_a_true_zero() -> None:
    model = nn.Embedding(5, 3)
    emulated = trained(model, lambda: model(torch.tensor([1, 4, 4])).sum())
    assert causes(emulated, "weight") == {"true": 9}


def test_the_cast_of_the_outputs_gradient() -> None:
    emulated = linear([1.0, 2.0], [1.0, 2.0**-26])
    assert causes(emulated, "weight") == {"gradient": 2}
    assert causes(emulated, "bias") == {"gradient": 1}


def test_a_gradient_that_a_later_layer_flushed() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    emulated = trained(model, lambda: (model(torch.ones(1, 2)) * 2.0**-26).sum())
    assert causes(emulated, "1.weight") == {"gradient": 2}
    assert emulated.zeros()["1.weight"].casts == {"1": 2}
    assert causes(emulated, "0.weight") == {"upstream": 4}


def test_the_cast_of_the_activation() -> None:
    assert causes(linear([1.0, 2.0**-26], [1.0, 1.0]), "weight") == {"forward": 2}


def test_a_product_that_its_sum_cannot_hold() -> None:
    """2^-26, half of FP16's smallest half."""
    emulated = linear([2.0**-13, 1.0], [2.0**-13, 1.0], order="fp16_sequential")
    assert causes(emulated, "weight") == {"product": 1}


def test_the_cast_of_the_result() -> None:
    emulated = linear([2.0**-13, 1.0], [2.0**-13, 1.0])
    assert causes(emulated, "weight") == {"result": 1}
    assert "exceptions={'*': {'weight_gradient': 'fp32'}}" in emulated.verdict


def test_terms_of_both_signs_cancel() -> None:
    model = nn.Linear(1, 1)
    factors = torch.tensor([[1.0], [-1.0]])
    emulated = trained(model, lambda: (model(torch.ones(2, 1)) * factors).sum())
    assert causes(emulated, "weight") == {"cancelled": 1}
    assert "No zero is the formats'" in emulated.verdict


def test_a_norms_weight() -> None:
    torch.manual_seed(0)
    model = nn.LayerNorm(4)
    factors = torch.tensor([1.0, 1.0, 0.0, 2.0**-26])
    emulated = trained(model, lambda: (model(torch.randn(2, 4)) * factors).sum())
    assert causes(emulated, "weight") == {"true": 1, "gradient": 1}
    assert causes(emulated, "bias") == {"true": 1, "gradient": 1}


def test_a_weight_that_two_layers_share() -> None:
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    model = nn.ModuleList([first, second])

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.parts[0](x) * torch.tensor([1.0, 0.0]) + self.parts[1](x * 2.0**-26)

    both = Both()
    emulated = trained(both, lambda: (both(torch.ones(1, 2))).sum())
    assert causes(emulated, "parts.0.weight") == {"forward": 2}


def half_step(model: nn.Module, loss: Callable[[], torch.Tensor], policy: str = "fp32") -> Emulation:
    with emulate(model, policy, optimizer=torch.optim.SGD(model.parameters(), lr=0.0), zeros=True) as emulated:
        loss().backward()
        zeros = {name: int((weight.grad == 0).sum()) for name, weight in model.named_parameters()}
    assert {name: emulated.zeros()[name].zeros for name in zeros} == zeros
    assert all(sum(emulated.zeros()[name].causes.values()) == count for name, count in zeros.items())
    return emulated


@pytest.mark.parametrize("inputs, gradients, found", [
    ([1.0, 0.0], [1.0, 1.0], {"true": 2}),
    ([1.0, 2.0**-26], [1.0, 1.0], {"forward": 2}),
    ([2.0**-13, 1.0], [2.0**-13, 1.0], {"result": 1}),
])  # fmt: skip
def test_weights_in_16_bits(inputs: list[float], gradients: list[float], found: dict[str, int]) -> None:
    """The same layer whose weights, activations and gradients are FP16 themselves."""

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x.half() * 1.0)

    model, x, factors = Scaled().half(), torch.tensor([inputs]), torch.tensor([gradients]).half()
    assert causes(half_step(model, lambda: (model(x) * factors).sum()), "layer.weight") == found


def test_gradients_in_16_bits_that_a_later_layer_flushed() -> None:
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 1, bias=False)).half()
    with torch.no_grad():
        model[1].weight.fill_(2.0**-13)
    x = torch.ones(1, 2).half()
    emulated = half_step(model, lambda: (model(x) * 2.0**-13).sum())
    assert causes(emulated, "0.weight") == {"gradient": 4}  # the cast of 2^-26
    assert causes(emulated, "1.weight") == {}
    deeper = nn.Sequential(nn.Linear(2, 2, bias=False), *model).half()
    emulated = half_step(deeper, lambda: (deeper(x) * 2.0**-13).sum())
    assert causes(emulated, "0.weight") == {"upstream": 4}


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scale", [2.0**-12, 1024.0])
@pytest.mark.parametrize("make", [small_models.unet, small_models.encoder, small_models.llama])
def test_causes_in_16_bits_sum_to_the_zeros(make: Any, scale: float, kind: torch.dtype) -> None:
    if make is small_models.llama:
        pytest.importorskip("transformers")
    torch.manual_seed(0)
    model, loss = make()
    model.to(kind)
    table = half_step(model, lambda: loss() * scale).zeros()
    flushed = sum(found.by_format for found in table.weights())
    assert (flushed > 20) == (kind is torch.float16 and scale < 1)
    unused = 64 - len(small_models.tokens()[:, :-1].unique())  # rows of the embedding; nothing follows the last token
    expected = 32 * unused if make is small_models.llama else 0
    assert sum(found.causes["true"] for found in table.weights()) == expected
    gradients = [weight.grad for weight in model.parameters()]
    model.zero_grad(set_to_none=True)
    with emulate(model, "fp32"):
        (loss() * scale).backward()
    assert all(torch.equal(one, weight.grad) for one, weight in zip(gradients, model.parameters()))


class Attention(nn.Module):
    """Attention without projections, so that gradients of its operands are those of the parameters times one."""

    def __init__(self, attend: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        shape = (1, 2, 4, 3)  # batch, heads, rows, size
        self.q, self.k, self.v = (nn.Parameter(torch.randn(shape) * 2.0**-4) for _ in range(3))
        self.attend = attend

    def forward(self) -> torch.Tensor:
        return self.attend(self.q * 1.0, self.k * 1.0, self.v * 1.0)


def by_matmul(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.matmul(q, k.transpose(-1, -2)), -1) @ v


def by_einsum(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = torch.einsum("bhid,bhjd->bhij", q, k)
    return torch.einsum("bhij,bhjd->bhid", torch.softmax(scores, -1), v)


def fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return nn.functional.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize("attention", ["math", "tiled"])
@pytest.mark.parametrize("attend", [by_matmul, by_einsum, fused], ids=["matmul", "einsum", "fused"])
def test_operands_of_attentions_products_have_rows(attend: Callable, attention: str) -> None:
    """The gradients of scores are below FP16's smallest half, those of probabilities are not."""
    torch.manual_seed(0)
    model = Attention(attend)
    emulated = trained(model, lambda: (model() * 2.0**-20).sum(), attention=attention)
    table = emulated.zeros()
    operands = {found.tensor: found for found in table.operands()}
    if attend is fused and attention == "tiled":
        assert [name.rpartition(".")[2] for name in operands] == ["query", "key", "value"]
    else:
        assert sorted(name.rpartition(".")[2] for name in operands) == ["left", "left", "right", "right"]
    for found in operands.values():
        assert sum(found.causes.values()) == found.zeros
    # The gradients of q, k and v arrive as those of their products' operands.
    zeros = [int((weight.grad == 0).sum()) for weight in (model.q, model.k, model.v)]
    assert zeros[0] == zeros[1] == 24 and zeros[2] < 24
    flushed = [found for found in operands.values() if found.elements == 24 and found.zeros == 24]
    assert len(flushed) == 2 and all(found.by_format == 24 for found in flushed)
    words = " ".join(table.words())
    assert "elements of the gradients of operands of products of two activations are zero" in words


def test_a_product_with_a_weight_has_no_row() -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4))
    emulated = trained(model, lambda: model(torch.ones(2, 3, 4)).sum())
    assert emulated.zeros().operands() == []


def test_checkpointed_layers_over_several_steps() -> None:
    torch.manual_seed(0)
    block, head = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), nn.Linear(8, 3)

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.head = block, head

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(checkpoint(self.block, x, use_reentrant=False))

    model, x, zeros = Checkpointed(), torch.randn(4, 8), 0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with emulate(model, "fp16_mixed", optimizer=optimizer, zeros=True, compare_steps=(2,)) as emulated:
        for _ in range(3):
            optimizer.zero_grad()
            (model(x).square().mean() * 1e-5).backward()
            zeros += sum(int((weight.grad == 0).sum()) for weight in model.parameters())
            optimizer.step()
    found = emulated.zeros().to_pandas().sum()
    assert found["zeros"] == zeros == found.drop(["elements", "zeros"]).sum()
    assert min(found["true"], found["upstream"], found["gradient"], found["result"]) > 0


def test_without_the_option_the_table_is_refused() -> None:
    with emulate(nn.Linear(1, 1), "fp16_mixed") as emulated:
        pass
    with pytest.raises(RuntimeError, match=r"give emulate\(\.\.\., zeros=True\)"):
        emulated.zeros()


@pytest.mark.parametrize("policy", ["fp16_mixed", "fp8_e4m3"])
@pytest.mark.parametrize("scale", [1.0, 1024.0])
@pytest.mark.parametrize("make", [small_models.unet, small_models.encoder, small_models.llama])
def test_causes_sum_to_the_zeros_and_change_no_bit(make: Any, scale: float, policy: str) -> None:
    if make is small_models.llama:
        pytest.importorskip("transformers")
    gradients = []
    for zeros in (True, False):
        torch.manual_seed(0)
        model, loss = make()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with emulate(model, policy, optimizer=optimizer, zeros=zeros, compare_steps=(), attention="math") as emulated:
            (loss() * scale).backward()
            optimizer.step()
        gradients.append({name: weight.grad.clone() for name, weight in model.named_parameters()})
        if not zeros:
            continue
        table = emulated.zeros()
        for name, gradient in gradients[0].items():
            assert table[name].zeros == int((gradient == 0).sum()), name
            assert sum(table[name].causes.values()) == table[name].zeros, name
        assert sum(found.elements for found in table.weights()) == sum(map(torch.numel, gradients[0].values()))
        assert all(sum(found.causes.values()) == found.zeros for found in table.operands())
        assert len(table.operands()) == (0 if make is small_models.unet else 8)  # two products of two layers
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name], rtol=0, atol=0, equal_nan=True)
