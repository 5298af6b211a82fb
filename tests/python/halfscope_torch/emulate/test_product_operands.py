"""Recipes under emulation: each operand of each product beside halfscope.round along the axis that is summed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import halfscope
from halfscope.torch import emulate

pytestmark = pytest.mark.torch

Tensor = torch.Tensor
ROWS, IN, OUT = 37, 72, 40  # no multiples of a block


def bf16(tensor: Tensor) -> Tensor:
    return tensor.bfloat16().float()


def product(a: Tensor, b: Tensor, left: str, right: str, model: str = "fp32_fused") -> Tensor:
    """a (m, k) times b (k, n) in formats with blocks along k, in BF16 again."""
    seen = halfscope.round(a.contiguous(), left, axis=1), halfscope.round(b.contiguous(), right, axis=0)
    return bf16(halfscope.matmul(*seen, order=model))


def wide_numbers(*shape: int, seed: int) -> Tensor:
    """Numbers of several binades in each block, some of them lost to any format of 8 bits."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator) * 2.0 ** torch.randint(-9, 4, shape, generator=generator)


class Linear(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(IN, OUT, bias=False)
        with torch.no_grad():
            self.fc.weight.copy_(wide_numbers(OUT, IN, seed=1))

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(x)


def trained(model: torch.nn.Module, x: Tensor, gradient: Tensor, policy: Any, **options: Any) -> tuple[Tensor, Any]:
    """The result of one step with the gradient `gradient` of it, and the emulation."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, policy, optimizer=optimizer, **options) as emulated:
        y = model(x)
        y.backward(gradient)
        optimizer.step()
    return y.detach(), emulated


@pytest.mark.parametrize(
    ("policy", "formats", "model"),
    [
        ("mxfp8", ["mxfp8_e4m3"] * 6, "fp32_fused"),
        ("mxfp8_floor", ["mxfp8_e4m3/floor"] * 6, "fp32_fused"),
        ("mxfp6", ["mxfp6_e2m3"] * 6, "fp32_fused"),
        (
            "fp8_deepseek",
            ["fp8_1x128", "fp8_128x128", "fp8_1x128", "fp8_128x128", "fp8_1x128", "fp8_1x128"],
            "fp32_chunked(128)",
        ),
    ],
)
def test_all_six_operands_of_a_layer(policy: str, formats: list[str], model: str) -> None:
    layer, x, gradient = Linear(), wide_numbers(ROWS, IN, seed=2), wide_numbers(ROWS, OUT, seed=3)
    x.requires_grad_()
    y, _ = trained(layer, x, gradient, policy)
    weight, inputs, dy = bf16(layer.fc.weight.detach()), bf16(x.detach()), bf16(gradient)
    forward, data, of_weight = formats[:2], formats[2:4], formats[4:]
    # A tile lies in a matrix (out, in) in both products, where `product` has blocks of the other axis: the same tiles.
    assert torch.equal(y, product(inputs, weight.t(), *forward, model))
    assert torch.equal(bf16(x.grad), product(dy, weight, *data, model))
    assert torch.equal(layer.fc.weight.grad, product(dy.t(), inputs, *of_weight, model))


def test_a_tensor_scale_of_the_operands_own() -> None:
    layer, x, gradient = Linear(), wide_numbers(ROWS, IN, seed=2), wide_numbers(ROWS, OUT, seed=3)
    x.requires_grad_()
    y, _ = trained(layer, x, gradient, "fp8_current")

    def scaled(tensor: Tensor, format: str, largest: float) -> Tensor:
        factor = torch.tensor(largest) / tensor.abs().max()
        return halfscope.round((tensor * factor).contiguous(), format) * (1 / factor)

    weight, inputs = (scaled(bf16(t.detach()), "fp8_e4m3", 448) for t in (layer.fc.weight, x))
    dy = scaled(bf16(gradient), "fp8_e5m2", 57344)
    assert torch.equal(y, bf16(halfscope.matmul(inputs, weight.t().contiguous(), order="fp32_fused")))
    assert torch.equal(bf16(x.grad), bf16(halfscope.matmul(dy, weight, order="fp32_fused")))


def test_delayed_scales_come_from_the_steps_before() -> None:
    layer, x = Linear(), wide_numbers(ROWS, IN, seed=2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.0)
    seen = []
    with emulate(layer, "fp8_delayed", optimizer=optimizer) as emulated:
        for size in (1.0, 8.0, 2.0):
            with torch.no_grad():
                layer(1000 * x)  # an evaluation leaves no magnitude behind
            layer(size * x).sum().backward()
            optimizer.step()
            cast = emulated._found.operands.cast("fc", "forward.left", "fp8_e4m3+delayed")
            seen.append(float(cast.scale))
    largest = float(bf16(x).abs().max())
    expected = torch.tensor([448.0]) / torch.tensor([largest, 8 * largest, 8 * largest])
    assert seen == expected.tolist()


def test_convolutions_have_blocks_along_their_patches() -> None:
    layer = torch.nn.Sequential(torch.nn.Conv2d(6, 9, 3, padding=1, bias=False))
    images, gradient = wide_numbers(2, 6, 7, 5, seed=4), wide_numbers(2, 9, 7, 5, seed=5)
    images.requires_grad_()
    y, emulated = trained(layer, images, gradient, "mxfp8")
    weight, format = bf16(layer[0].weight.detach()), "mxfp8_e4m3"

    def rows(tensor: Tensor) -> Tensor:
        return tensor.permute(0, 2, 3, 1).reshape(-1, tensor.shape[1])

    def patches(tensor: Tensor) -> Tensor:  # (positions, taps and channels)
        columns = torch.nn.functional.unfold(tensor, 3, padding=1)
        columns = columns.reshape(2, tensor.shape[1], 9, -1)
        return columns.permute(0, 3, 2, 1).reshape(-1, 9 * tensor.shape[1])

    inputs, dy = bf16(images.detach()), bf16(gradient)
    taps = weight.permute(2, 3, 1, 0).reshape(-1, 9)
    turned = weight.flip(2, 3).permute(2, 3, 0, 1).reshape(-1, 6)
    assert torch.equal(rows(y), product(patches(inputs), taps, format, format))
    assert torch.equal(rows(bf16(images.grad)), product(patches(dy), turned, format, format))
    expected = product(patches(inputs).t(), rows(dy), format, format)
    assert torch.equal(layer[0].weight.grad.permute(2, 3, 1, 0).reshape(-1, 9), expected)
    assert set(emulated.operands()) == {("0", f"{p}.{s}") for p in PRODUCTS for s in ("left", "right")}


PRODUCTS = ("forward", "data_gradient", "weight_gradient")


class Pair(torch.nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


def test_the_right_one_of_two_activations_counts_as_the_weight() -> None:
    a, b = (wide_numbers(*shape, seed=seed).requires_grad_() for seed, shape in enumerate([(3, 20, 40), (3, 40, 33)]))
    gradient = wide_numbers(3, 20, 33, seed=7)
    rules = {"*": {"operands": "matmul.forward=mxfp8_e4m3, matmul.data_gradient.right=mxfp4, "
                               "matmul.weight_gradient.left=mxfp6_e2m3"}}  # fmt: skip
    with emulate(Pair(), "bf16_mixed", exceptions=rules, order="fp32_fused"):
        y = Pair()(a, b)
    model = Pair()
    with emulate(model, "bf16_mixed", exceptions=rules, order="fp32_fused") as emulated:
        y = model(a, b)
        y.backward(gradient)
    inputs, weight, dy = bf16(a.detach()), bf16(b.detach()), bf16(gradient)
    for batch in range(3):
        assert torch.equal(y[batch], product(inputs[batch], weight[batch], "mxfp8_e4m3", "mxfp8_e4m3"))
        assert torch.equal(bf16(a.grad[batch]), product(dy[batch], weight[batch].t(), "bf16", "mxfp4"))
        assert torch.equal(bf16(b.grad[batch]), product(inputs[batch].t(), dy[batch], "bf16", "mxfp6_e2m3"))
    assert emulated.operands()["matmul" if ("matmul", "forward.left") in emulated.operands() else "bmm", "forward.left"]


class Language(torch.nn.Module):
    def __init__(self, kind: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(50, 32)
        self.first, self.second = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)
        self.lm_head = torch.nn.Linear(32, 50, bias=False)
        self.to(kind)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.lm_head(self.second(self.first(self.embedding(tokens)).relu()))


def layers_of(model: torch.nn.Module, policy: Any, **options: Any) -> dict[str, set[str]]:
    """Formats of the operands that a step had, by layer."""
    torch.manual_seed(0)
    tokens = torch.arange(40).reshape(4, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with emulate(model, policy, optimizer=optimizer, **options) as emulated:
        logits = model(tokens).float()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()
    found: dict[str, set[str]] = {}
    for layer, place in emulated.operands():
        found.setdefault(layer, set()).add(emulated.operands()[layer, place].format)
    return found


@pytest.mark.parametrize(
    ("policy", "rules", "expected"),
    [
        ("mxfp8", {}, {"first": {"mxfp8_e4m3"}, "second": {"mxfp8_e4m3"}}),
        ("mxfp8", {"second": "bf16"}, {"first": {"mxfp8_e4m3"}}),
        ("mxfp8", {"lm_head": "mxfp6"}, {"first": {"mxfp8_e4m3"}, "second": {"mxfp8_e4m3"}, "lm_head": {"mxfp6_e2m3"}}),
        ("bf16_mixed", {"first": "mxfp8"}, {"first": {"mxfp8_e4m3"}}),
        ("bf16_mixed", {"first": {"operands": "forward.right=mxfp4"}}, {"first": {"mxfp4"}}),
        ("mxfp8", {"first:linears": "fp32"}, None),
        ("mxfp8", {"first:products": "fp32"}, {"second": {"mxfp8_e4m3"}}),
    ],
)  # fmt: skip
def test_rules_choose_layers(policy: str, rules: dict, expected: dict | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="no operation 'linears'"):
            layers_of(Language(), policy, exceptions=rules)
    else:
        assert layers_of(Language(), policy, exceptions=rules) == expected


def test_weights_of_16_bits_have_operands_too() -> None:
    assert layers_of(Language(torch.bfloat16), "mxfp8") == {"first": {"mxfp8_e4m3"}, "second": {"mxfp8_e4m3"}}
    layer, x, gradient = Linear(), wide_numbers(ROWS, IN, seed=2), wide_numbers(ROWS, OUT, seed=3)
    wide, _ = trained(layer, x, gradient, "mxfp8")
    expected = layer.fc.weight.grad.clone()
    layer.zero_grad()
    layer.bfloat16()
    narrow, _ = trained(layer, x.bfloat16(), gradient.bfloat16(), "mxfp8")
    assert torch.equal(narrow.float(), wide)
    assert torch.equal(layer.fc.weight.grad.float(), expected)


def test_counts_are_those_of_the_images() -> None:
    layer, x, gradient = Linear(), wide_numbers(ROWS, IN, seed=2), wide_numbers(ROWS, OUT, seed=3)
    _, emulated = trained(layer, x, gradient, "mxfp4")
    inputs = bf16(x)
    image = halfscope.round(inputs, "mxfp4", axis=0)
    row = emulated.operands()["fc", "weight_gradient.right"]
    assert row.counts.elements == inputs.numel()
    assert row.counts.blocks == IN * 2
    assert row.counts.flushed == int(((image == 0) & (inputs != 0)).sum())
    ratio = 10 * torch.log10(inputs.double().square().sum() / (image.double() - inputs.double()).square().sum())
    assert row.decibels == pytest.approx(float(ratio), abs=1e-6)
    assert "fc" in str(emulated.operands()) and "mxfp4" in emulated.verdict


def test_nothing_but_its_seed_decides_a_recipe_with_random_bits() -> None:
    def gradient_of(seed: int) -> Tensor:
        torch.manual_seed(0)
        model = Language()
        layers_of(model, "nvfp4", seed=seed)
        return model.first.weight.grad.clone()

    assert torch.equal(gradient_of(3), gradient_of(3))
    assert not torch.equal(gradient_of(3), gradient_of(4))


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda: emulate(Linear(), "bf16_kahan"), "bf16_stochastic"),
        (lambda: emulate(Linear(), "bf16", exceptions={"fc": {"operands": "forward=mxfp9"}}), "mxfp9"),
        (lambda: emulate(Linear(), "mxfp8", order="tensor_core(hopper)"), "fp32_fused"),
        (lambda: emulate(Linear(), "nvfp5"), "nvfp4"),
    ],
)  # fmt: skip
def test_refusals_name_what_would_be_right(asked: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        asked()


def test_zeros_that_the_operands_format_makes_have_that_cause() -> None:
    layer, x, gradient = Linear(), wide_numbers(ROWS, IN, seed=2), wide_numbers(ROWS, OUT, seed=3)
    gradient[:, 0] *= 2.0**-9  # beside larger gradients of their block, along the outputs
    gradient[1:, 1] = 0
    gradient[0, 1] = 1.0
    _, emulated = trained(layer, x, gradient, "mxfp4", zeros=True)
    zeros = int((layer.fc.weight.grad == 0).sum())
    found = emulated.zeros()["fc.weight"]
    assert found.zeros == zeros == sum(found.causes.values())
    # Column 1 has one row whose terms are x's: those that MXFP4 flushed in x's blocks along the rows.
    flushed = (halfscope.round(bf16(x), "mxfp4", axis=0)[0] == 0) & (bf16(x)[0] != 0)
    assert int(flushed.sum()) > 0
    assert found.causes["operand"] >= int(flushed.sum())
    assert "operand" in str(emulated.zeros())
    assert "exceptions={'fc': 'bf16'}" in emulated.verdict


@pytest.mark.parametrize("order", [None, "pytorch", "fp32_fused", "split_k(2, fp32)"])
@pytest.mark.parametrize("layer", ["linear", "convolution"])
def test_rules_of_operands_alone_hold_under_fp32(layer: str, order: str | None) -> None:
    """Whatever the order of sums: no other tensor has a format, and no other layer changes."""
    torch.manual_seed(0)
    if layer == "linear":
        model, x = torch.nn.Sequential(torch.nn.Linear(IN, OUT), torch.nn.Linear(OUT, 8)), torch.randn(ROWS, IN)
    else:
        model, x = torch.nn.Sequential(torch.nn.Conv2d(4, 8, 1), torch.nn.Conv2d(8, 4, 1)), torch.randn(2, 4, 3, 3)
    with torch.no_grad():
        hidden = model[0](x)
        with emulate(model, "fp32", exceptions={"1": {"operands": "forward=mxfp4"}}, order=order):
            found = model(x)
        rows, weight = hidden.movedim(1, -1), model[1].weight.flatten(1)
        seen = (halfscope.round(each.contiguous(), "mxfp4") for each in (rows, weight))
        expected = torch.nn.functional.linear(*seen, model[1].bias).movedim(-1, 1)
    assert torch.allclose(found, expected, atol=1e-5) and not torch.allclose(model(x), expected, atol=1e-3)
