"""`gradient_errors` beside products written out, choices beside `emulate`, and what is left as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

import halfscope
from halfscope.torch import GradientErrors, emulate, gradient_errors
from json_schema import faults
from scored_networks import Transformer, TwoLayers, convolutions

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
Gradients = list[Tensor]
FORMATS = ("mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp8_e4m3", "fp8_e4m3+current", "mxfp4/toward_zero")
KINDS = ("forward", "data_gradient", "weight_gradient")
PRODUCTS = ["forward@one", "weight_gradient@one", "forward@two", "data_gradient@two", "weight_gradient@two"]


def loss_of(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    x, labels = batch
    return nn.functional.cross_entropy(model(x), labels)


def random_step(seed: int, batches: int = 3) -> tuple[TwoLayers, list[tuple[Tensor, Tensor]]]:
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    rows, inputs, hidden, classes = draw(5, 70), draw(3, 80), draw(3, 80), draw(2, 40)
    first, second = (torch.randn(shape, generator=generator) * 0.3 for shape in ((hidden, inputs), (classes, hidden)))
    x = torch.randn(batches, rows, inputs, generator=generator)
    x[..., draw(0, inputs)] *= 2.0 ** draw(0, 6)
    return TwoLayers(first, second), list(zip(x, torch.randint(classes, (batches, rows), generator=generator)))


def by_hand(model: TwoLayers, batch: tuple[Tensor, Tensor], rounded: str, format: str) -> Gradients:
    """Gradients of both weights with one product's operands rounded along the axis that it sums over."""
    (x, labels), first, second = batch, model.one.weight.detach(), model.two.weight.detach()

    def times(name: str, left: Tensor, right: Tensor) -> Tensor:
        if name != rounded:
            return left @ right
        cast = format.removesuffix("+current")
        if cast != format:  # one scale for the tensor: the largest number becomes the format's
            return scaled(left, cast) @ scaled(right, cast)
        return halfscope.round(left.contiguous(), cast, axis=1) @ halfscope.round(right.contiguous(), cast, axis=0)

    h = times("forward@one", x, first.t())
    y = h.relu()
    z = times("forward@two", y, second.t())
    dz = (z.softmax(-1) - nn.functional.one_hot(labels, z.shape[1])) / len(x)
    dy = times("data_gradient@two", dz, second)
    dh = dy * (h > 0)
    return [times("weight_gradient@one", dh.t(), x).double(), times("weight_gradient@two", dz.t(), y).double()]


def scaled(matrix: Tensor, format: str) -> Tensor:
    scale = 448.0 / matrix.abs().max()
    return halfscope.round((matrix * scale).contiguous(), format) / scale


def error_over_noise(exact: list[Gradients], found: list[Gradients]) -> tuple[float, float]:
    """By batch and weight; whole, and without one factor for each weight."""
    of_weights = [torch.stack(each) for each in zip(*exact)], [torch.stack(each) for each in zip(*found)]
    noise = sum(float(g.var(0, correction=1).sum()) * len(g) for g in of_weights[0])
    whole = beside = 0.0
    for g, q in zip(*of_weights):
        whole += float((q - g).square().sum())
        slope = torch.linalg.lstsq(g.reshape(-1, 1), (q - g).reshape(-1, 1)).solution
        beside += float((q - g - slope * g).square().sum())
    return whole / noise, beside / noise


def check_by_hand(seed: int) -> None:
    model, batches = random_step(seed)
    format = FORMATS[seed % len(FORMATS)]
    found = gradient_errors(model, loss_of, batches, "fp32", exceptions={"*": {"operands": f"*={format}"}}, limit=0)
    exact = [by_hand(model, batch, "", format) for batch in batches]
    assert sorted(found.units) == sorted(PRODUCTS)
    for name, error in found.units.items():
        other = error_over_noise(exact, [by_hand(model, batch, name, format) for batch in batches])
        assert (error.whole, error.beside_factor) == pytest.approx(other, rel=1e-3, abs=1e-9), (name, format)


@pytest.mark.parametrize("seed", range(18))
def test_errors_of_products_written_out(seed: int) -> None:
    check_by_hand(seed)


@pytest.mark.slow
def test_errors_of_three_hundred_steps_written_out() -> None:
    for seed in range(18, 318):
        check_by_hand(seed)


def with_labels(batches: int, seed: int = 3) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(50, (batches, 8, 12), generator=generator)
    return list(zip(tokens, tokens.sum(-1) % 10))


def through_emulate(
    model: nn.Module, batches: list, policy: str, exceptions: Mapping[str, Any], order: str | None = None
) -> list[Gradients]:
    found = []
    for index, batch in enumerate(batches):
        model.zero_grad()
        with emulate(model, policy, exceptions=exceptions, order=order, seed=index):
            loss_of(model, batch).backward()
        found.append([weight.grad.double() for weight in model.parameters()])
    model.zero_grad()
    return found


def test_a_choice_beside_emulate() -> None:
    """The error that is told is that of the exceptions as they are typed; one product less leaves too much."""
    torch.manual_seed(0)
    model, batches = Transformer(blocks=1), with_labels(4)
    limit = 0.3 * gradient_errors(model, loss_of, batches, limit=9).whole.beside_factor
    found = gradient_errors(model, loss_of, batches, limit=limit)
    exact = through_emulate(model, batches, "fp32", {})
    typed = error_over_noise(exact, through_emulate(model, batches, "nvfp4", found.exceptions))
    assert f"{typed[1]:.2g} with its tensors in BF16 as well" in " ".join(str(found.report).split())
    assert 0.5 * limit < typed[1] < 1.1 * limit

    def leaving(products: tuple[str, ...]) -> float:
        rules = "*=nvfp4, forward.right=nvfp4_16x16, data_gradient.right=nvfp4_16x16, " \
                "data_gradient.left=nvfp4/stochastic, weight_gradient.left=nvfp4/stochastic+hadamard, " \
                "weight_gradient.right=nvfp4+hadamard"  # fmt: skip
        exceptions = {"blocks.*": {"operands": rules}}
        for name in found.units:
            layer = name.partition("@")[2]
            left = ", ".join(f"{kind}=role" for kind in KINDS if f"{kind}@{layer}" in products)
            exceptions |= {layer: {"operands": left}} if left else {}
        return error_over_noise(exact, through_emulate(model, batches, "fp32", exceptions, "pytorch"))[1]

    assert leaving(found.left) <= limit < leaving(found.left[:-1])
    ranked = sorted(found.units, key=lambda name: -found.units[name].beside_factor)
    assert list(found.left) == ranked[: len(found.left)]
    for each in found.layers:
        products = tuple(name for name in found.units if name.partition("@")[2] in each.layers)
        assert each.error.beside_factor == pytest.approx(leaving(products), rel=1e-6, abs=1e-9)
    assert [len(each.layers) for each in found.layers] == [0, 1, 2, 4, 6]
    assert found.layers[0].error.whole == found.whole.whole and found.layers[-1].error.whole < 1e-9


def test_adam_does_not_see_a_factor() -> None:
    """Operands with one number each: their rounding toward zero makes each gradient shorter, and turns none."""
    model = nn.Linear(16, 1, bias=False)
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randn(16, generator=generator).sign() * 1.4 for _ in range(8)]
    rules = {"": {"operands": "weight_gradient.right=fp8_e4m3/toward_zero"}}

    def run(optimizer: str) -> GradientErrors:
        options = {"exceptions": rules, "optimizer": optimizer, "limit": 1e-4}
        return gradient_errors(model, lambda model, x: model(x[None]).sum(), batches, "fp32", **options)

    whole, seen = run("sgd"), run("adam")
    assert whole.is_seen and not seen.is_seen and whole.left == ("weight_gradient@",)
    gradients = torch.stack(batches).double()
    noise = float((gradients - gradients.mean(0)).square().sum()) * 8 / 7
    assert whole.whole.whole == pytest.approx((1.4 - 1.375) ** 2 * gradients.numel() / noise, rel=1e-5)
    assert seen.whole.beside_factor < 1e-12
    assert "no effect on the training is expected" in str(seen.report) and "exceptions" in str(whole.report)


class Noisy(nn.Module):
    """Dropout, and a norm whose buffers a forward pass changes."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.norm, self.head = convolutions(16), nn.BatchNorm1d(16), nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(nn.functional.dropout(self.norm(self.body(x)), 0.5, self.training))


def test_the_model_is_as_before() -> None:
    torch.manual_seed(0)
    model, generator = Noisy().train(), torch.Generator().manual_seed(1)
    images, labels = torch.randn(4, 8, 3, 9, 9, generator=generator), torch.randint(10, (4, 8), generator=generator)
    batches = list(zip(images, labels))
    loss_of(model, batches[0]).backward()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = [weight.grad.clone() for weight in model.parameters()]
    random = torch.get_rng_state()
    found = gradient_errors(model, loss_of, batches, "mxfp8", limit=0)
    assert model.training and torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(weight.grad, old) for weight, old in zip(model.parameters(), gradients))
    assert 0 < found.whole.whole < 0.1  # other masks of dropout would be larger than any noise
    assert found.whole.whole == gradient_errors(model, loss_of, batches, "mxfp8", limit=9).whole.whole


def test_a_gradient_that_overflows() -> None:
    model, batches = random_step(1)
    with torch.no_grad():
        model.one.weight *= 2.0**20
        model.two.weight *= 2.0**-20
    rules = {"*": {"operands": "forward=fp16"}}
    found = gradient_errors(model, loss_of, batches, "fp32", exceptions=rules)
    assert found.whole.whole == found.units["forward@one"].whole == float("inf")
    assert set(found.left) >= {"forward@one", "forward@two"} and "error over noise inf is above 0.02" in found.verdict


def test_the_report() -> None:
    torch.manual_seed(0)
    model, batches = Transformer(blocks=1), with_labels(8)
    found = gradient_errors(model, loss_of, batches, "mxfp8")
    text = str(found.report)
    assert text.startswith('Type emulate(model, "mxfp8"): no effect on the training is expected\n  Why: error')
    assert len(found.report) == 0 and found.exceptions == {} and found.units == {} and found.layers == ()
    assert "95 % interval" in text and "no training was tried" in text and "Adam does not see it" in text
    seen = gradient_errors(model, loss_of, batches[:3], "mxfp4", optimizer="sgd", limit=1e-3)
    text = str(seen.report)
    assert text.startswith('Type emulate(model, "mxfp4", exceptions=exceptions) with\nexceptions = {\n    "blocks.0.')
    words = " ".join(text.split())
    assert "no interval below 8 batches" in words and "the whole error counts" in words
    assert list(faults(seen.report.to_dict())) == list(faults(found.report.to_dict())) == []
    assert seen.report.findings[0].about == seen.left and "layers left out" in seen.table()
    frame = seen.to_pandas()
    assert len(frame) == 4 + len(seen.units)
    assert frame.loc[("all", "all layers"), "whole"] == seen.whole.whole
    code = text[text.index("exceptions = {") : text.index("  Why")]
    scope: dict[str, Any] = {}
    exec(code, scope)
    assert scope["exceptions"] == seen.exceptions


def test_exceptions_that_were_given_come_first() -> None:
    model, batches = random_step(2)
    given = {"one": {"operands": "forward=mxfp4"}, "two": "mxfp4"}
    found = gradient_errors(model, loss_of, batches, "fp32", exceptions=given, limit=0)
    assert list(found.exceptions)[:2] == ["one", "two"] and list(found.exceptions)[2:] == ["[o]ne", "[t]wo"]
    exact = through_emulate(model, batches, "fp32", {})
    typed = through_emulate(model, batches, "fp32", found.exceptions | {"two": "fp32"}, "pytorch")
    assert error_over_noise(exact, typed)[0] < 1e-10


def constant(model: nn.Module, batch: Tensor) -> Tensor:
    return model(torch.ones(2, 8)).sum() + 0 * batch.sum()


def plain(model: nn.Module, batch: Tensor) -> Tensor:
    return model(batch).square().mean()


MODEL, XS = nn.Linear(8, 4), list(torch.randn(3, 2, 8, generator=torch.Generator().manual_seed(0)))
REFUSED: dict[str, tuple[tuple, dict[str, Any], type[Exception], str]] = {
    "model": ((3, plain, XS), {}, TypeError, "gradient_errors: model=3; give a module"),
    "one batch": ((MODEL, plain, XS[:1]), {}, ValueError, "one batch has no noise; give eight or more"),
    "a tensor": ((MODEL, plain, XS[0]), {}, TypeError, "batches is a tensor .*; give a list of batches"),
    "no formats": ((MODEL, plain, XS, "bf16"), {}, ValueError, "policy 'bf16' gives no product .* give one of fp8"),
    "unknown": ((MODEL, plain, XS, "fp5"), {}, ValueError, "unknown policy 'fp5'"),
    "delayed": ((MODEL, plain, XS, "fp8_delayed"), {}, ValueError, "'forward@' has scales of earlier steps"),
    "optimizer": ((MODEL, plain, XS), {"optimizer": "lion"}, ValueError, "optimizer='lion'; give one of 'adam', 'sgd'"),
    "limit": ((MODEL, plain, XS), {"limit": -1}, ValueError, "limit=-1; give a number from 0 on"),
    "same": ((MODEL, constant, XS), {}, ValueError, "all batches have the same gradient"),
    "infinite": ((MODEL, plain, [x * 1e30 for x in XS]), {}, ValueError, "gradient of 'weight' is not finite"),
    "no scalar": ((MODEL, lambda model, x: model(x), XS), {}, ValueError, "a tensor of one element"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_that_are_refused(case: str) -> None:
    arguments, options, error, words = REFUSED[case]
    options = {"exceptions": {"": {"operands": "*=mxfp4"}} if case in ("same", "infinite") else None, **options}
    with pytest.raises(error, match=words) as raised:
        gradient_errors(*arguments, **options)
    assert "\n" not in str(raised.value)
