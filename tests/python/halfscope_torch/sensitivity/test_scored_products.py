"""Products in a format beside `emulate`, rows of sequences, groups of units, and the model after a pass."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import emulate, sensitivity
from halfscope.torch.sensitivity.calibration import Calibration
from halfscope.torch.sensitivity.gradient_pass import find_units, mixed
from halfscope.torch.sensitivity.loss_families import Softmax
from halfscope.torch.sensitivity.measurement import drawn_scores, first_order
from halfscope.torch.sensitivity.mixture_trials import tried
from halfscope.torch.sensitivity.operand_images import RIGHT, SIDES, OperandFormat
from halfscope.torch.sensitivity.units import Layout
from halfscope.torch.sensitivity.watched_products import WatchedProducts
from scored_networks import Transformer, convolutions, tokens, two_layers

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
FORMATS = ("mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp8_e4m3", "bf16", "fp16", "fp8_e4m3+current", "nvfp4_16x16")


class Transposed(nn.Module):
    """A layer whose weight lies as (in, out), as GPT-2's do."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(24, 40)), nn.Parameter(torch.randn(40))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x.view(-1, 24), self.weight).view(*x.shape[:-1], 40)


class Matmul(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(24, 40))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight


class Output(nn.Module):
    """The first of a layer's results, or attention of a layer to itself."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        attends = isinstance(self.layer, nn.MultiheadAttention)
        return (self.layer(x, x, x) if attends else self.layer(x))[0]


SEQUENCES = (3, 7, 24)
CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(24, 40), SEQUENCES),
    "transposed": (Transposed, SEQUENCES),
    "matmul": (Matmul, SEQUENCES),
    "conv1d": (lambda: nn.Conv1d(24, 8, 3, stride=2, padding=1), (3, 24, 11)),
    "conv2d": (lambda: nn.Conv2d(6, 9, (3, 2), padding=(1, 0), dilation=(2, 1)), (2, 6, 9, 7)),
    "same": (lambda: nn.Conv2d(6, 9, 3, padding="same", bias=False), (2, 6, 9, 7)),
    "grouped": (lambda: nn.Conv2d(40, 20, 3, padding=1, groups=4), (2, 40, 5, 5)),
    "depthwise": (lambda: nn.Conv2d(12, 12, 3, padding=1, groups=12), (2, 12, 5, 5)),
    "conv3d": (lambda: nn.Conv3d(4, 6, 2), (2, 4, 3, 4, 5)),
    "normed": (lambda: nn.utils.parametrizations.weight_norm(nn.Conv1d(24, 8, 3)), (3, 24, 11)),
    "attention": (lambda: Output(nn.MultiheadAttention(24, 2, batch_first=True)), SEQUENCES),
    "encoder": (lambda: nn.TransformerEncoderLayer(24, 2, 48, batch_first=True), SEQUENCES),
    "lstm": (lambda: Output(nn.LSTM(24, 20, num_layers=2, batch_first=True)), SEQUENCES),
    "both": (lambda: Output(nn.LSTM(24, 20, bidirectional=True, proj_size=12)), SEQUENCES),
    "gru": (lambda: Output(nn.GRU(24, 20, bidirectional=True)), SEQUENCES),
    "rnn": (lambda: Output(nn.RNN(24, 20, bias=False)), SEQUENCES),
}


def in_format(model: nn.Module, x: Tensor, format: OperandFormat | None) -> Tensor:
    """The output with all products in a format."""
    watched = WatchedProducts(model, lambda module, call, run: run() if format is None else mixed(call, format))
    with watched.watching(), torch.no_grad():
        return model(x)


@pytest.mark.parametrize("name", CASES)
def test_a_product_is_that_of_emulate(name: str) -> None:
    make, shape = CASES[name]
    torch.manual_seed(0)
    model, x = nn.Sequential(make()).eval(), torch.randn(shape)
    assert torch.allclose(in_format(model, x, None), model(x), atol=1e-6)
    for format in FORMATS:
        with (
            emulate(model, "fp32", order="fp32_fused", exceptions={"*": {"operands": f"forward={format}"}}),
            torch.no_grad(),
        ):
            expected = model(x)
        found = in_format(model, x, OperandFormat(format, SIDES))
        assert (found - expected).abs().max() <= 1e-6 * expected.abs().max(), format
        assert not torch.equal(found, model(x))


def test_weights_alone() -> None:
    model, x = nn.Sequential(nn.Linear(24, 40)), torch.randn(5, 24)
    format = OperandFormat("mxfp4", (RIGHT,))
    with emulate(model, "fp32", order="fp32_fused", exceptions={"0": {"operands": format.rule}}), torch.no_grad():
        expected = model(x)
    assert format.rule == "forward.right=mxfp4" and torch.allclose(in_format(model, x, format), expected, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_scores_predict_the_divergence_of_any_layer(name: str) -> None:
    """Outputs are means of a Gaussian, for which the last layer's prediction is exact but for the draws."""
    make, shape = CASES[name]
    torch.manual_seed(0)
    model, batches = nn.Sequential(make()).eval(), [torch.randn(shape) for _ in range(60)]
    found = sensitivity(model, batches, ["mxfp8_e4m3"], "gaussian", groups=[])
    true = math.fsum(
        float((in_format(model, x, OperandFormat("mxfp8_e4m3")) - in_format(model, x, None)).square().mean()) / 2
        for x in batches
    ) / len(batches)
    predicted = math.fsum(score.nats for score in found.scores.values())
    assert abs(math.log2(predicted / true)) < 1, found.table()


@pytest.mark.parametrize("name", CASES)
def test_scores_beside_a_mixture(name: str) -> None:
    """The mixture's own format changes nothing beside it; the way back to FP32 has less KL, to first order too."""
    make, shape = CASES[name]
    torch.manual_seed(0)
    model, batches = nn.Sequential(make()).eval(), [torch.randn(shape) for _ in range(4)]
    found = sensitivity(model, batches, ["mxfp4", "fp32"], "gaussian", groups=[])
    subject = found._subject
    mixture = dict.fromkeys(subject.units.by_name, subject.formats["mxfp4"])
    beside = drawn_scores(subject, mixture).scores(found.formats, 0)
    slopes = first_order(subject, mixture)
    for unit in found.units:
        assert beside[unit, "mxfp4"].nats == slopes[unit, "mxfp4"] == 0
        assert beside[unit, "fp32"].nats > 0
    true = tried(subject, [dict.fromkeys(found.units, "mxfp4")])[0].mean
    assert sum(slopes[unit, "fp32"] for unit in found.units) == pytest.approx(-2 * true, rel=0.25)


def units_of(model: nn.Module, batch: Tensor) -> dict[str, Layout]:
    units = find_units(Calibration(model, (batch,), Softmax()))
    return {name: units.layouts[name] for name in units.by_name}


class TimeFirst(nn.Module):
    """Sequences come first outside, time inside."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(50, 24), nn.LSTM(24, 16), nn.Linear(16, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.lstm(self.embed(tokens.t()))[0].transpose(0, 1))


class Routed(nn.Module):
    """Tokens sorted by an expert, so that rows are not a sequence's."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.expert, self.head = nn.Embedding(50, 24), nn.Linear(24, 24), nn.Linear(24, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens).flatten(0, 1)
        order = x[:, 0].argsort()
        x = x[order][: len(order) // 2]
        y = torch.zeros(len(order), 24).index_copy(0, order[: len(x)], self.expert(x))
        return self.head(y.view(*tokens.shape, 24).mean(1))


def test_rows_follow_the_sequences() -> None:
    torch.manual_seed(0)
    batch = tokens(1, 6)[0]
    assert set(units_of(Transformer(of_tokens=True), batch).values()) == {Layout.OUTER}
    assert set(units_of(convolutions(), torch.randn(4, 3, 9, 9)).values()) == {Layout.OUTER}
    inside = units_of(TimeFirst(), batch)
    assert inside == {"embed": Layout.INNER, "lstm": Layout.INNER, "head": Layout.OUTER}
    routed = units_of(Routed(), batch)
    assert routed == {"embed": Layout.OUTER, "expert": Layout.MIXED, "head": Layout.OUTER}


def test_a_mixed_layout_has_a_sample_for_each_batch() -> None:
    torch.manual_seed(0)
    found = sensitivity(Routed(), tokens(5, 8), ["mxfp4"])
    assert found.scores["expert", "mxfp4"].samples == 5 and found.scores["head", "mxfp4"].samples == 40
    assert math.isnan(found.scores["expert", "mxfp4"].low) and found.scores["expert", "mxfp4"].nats > 0


def test_groups_are_found_and_given() -> None:
    torch.manual_seed(0)
    model, batches = Transformer(blocks=1), tokens(4, 32)
    found = sensitivity(model, batches, ["mxfp4"])
    assert found.units == ("embed", "blocks.0.attention.q + k + v", "blocks.0.attention.o", "blocks.0.up",
                           "blocks.0.down", "head")  # fmt: skip
    alone = sensitivity(model, batches, ["mxfp4"], groups=[])
    assert len(alone.units) == 8
    given = sensitivity(model, batches, ["mxfp4"], groups=[["blocks.0.up", "head"]])
    assert "blocks.0.up + head" in given.units and "blocks.0.attention.q" in given.units
    joint = found.scores["blocks.0.attention.q + k + v", "mxfp4"]
    parts = [alone.scores[f"blocks.0.attention.{name}", "mxfp4"].nats for name in "qkv"]
    assert joint.nats == pytest.approx(sum(parts), rel=0.5) and joint.nats != pytest.approx(sum(parts), rel=1e-6)


def test_a_pass_leaves_the_model_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 4)).train()
    model[0].weight.requires_grad_(False)
    model[3].eval()
    model(torch.randn(4, 8)).sum().backward()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    gradient, modes = model[3].weight.grad.clone(), [module.training for module in model.modules()]
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    with torch.no_grad():
        sensitivity(model, [torch.randn(4, 8, generator=torch.Generator().manual_seed(0))], ["mxfp4"])
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert [module.training for module in model.modules()] == modes
    assert [weight.requires_grad for weight in model.parameters()] == [False, *[True] * 5]
    assert torch.equal(model[3].weight.grad, gradient)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_the_same_seed_gives_the_same_scores() -> None:
    model, x = two_layers()
    once, again, other = (sensitivity(model, [x], ["mxfp4"], seed=seed).scores for seed in (0, 0, 1))
    assert once == again and once != other


class InPlace(nn.Module):
    """Results that are changed in place, which is no fault, and an input that is, which is one."""

    def __init__(self, is_faulty: bool) -> None:
        super().__init__()
        self.one, self.two, self.is_faulty = nn.Linear(8, 8), nn.Linear(8, 4), is_faulty

    def forward(self, x: Tensor) -> Tensor:
        x = x * 1
        y = self.one(x).relu_()
        if self.is_faulty:
            x += 1
        return self.two(y).mul_(2)


def test_changes_in_place() -> None:
    torch.manual_seed(0)
    model, batches = InPlace(False), [torch.randn(16, 8)]
    scores = sensitivity(model, batches, ["mxfp4"]).scores
    plain = nn.Sequential(model.one, nn.ReLU(), model.two, Twice())
    expected = sensitivity(plain, batches, ["mxfp4"]).scores
    assert [each.nats for each in scores.values()] == [each.nats for each in expected.values()]
    with pytest.raises(RuntimeError, match="the input of 'one' was changed in place after its product; write x = x"):
        sensitivity(InPlace(True), batches, ["mxfp4"])


class Twice(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2
