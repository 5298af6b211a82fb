"""Scores with known answers: KL and Gauss-Newton forms of two layers, exact operands, planted units."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.func import jvp

import halfscope
from halfscope.torch import sensitivity
from halfscope.torch.sensitivity.mixture_trials import tried
from halfscope.torch.sensitivity.operand_images import OperandFormat
from scored_networks import Transformer, plant, tokens, two_layers
from squared_errors import squared_errors

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
FORMATS = ("mxfp8_e4m3", "mxfp6_e2m3", "nvfp4", "mxfp4")
# By format: layer 1's KL and exact Gauss-Newton form, layer 2's; of the prototype in facts/sensitivity.md, section 11.
KNOWN = {
    "mxfp8_e4m3": (1.496e-3, 1.502e-3, 1.654e-3, 1.647e-3),
    "mxfp6_e2m3": (1.661e-3, 1.679e-3, 1.767e-3, 1.761e-3),
    "nvfp4": (1.774e-2, 1.833e-2, 1.729e-2, 1.737e-2),
    "mxfp4": (2.833e-2, 2.822e-2, 3.276e-2, 3.274e-2),
}
# Layer 1's form without the products of different channels, of 200 draws of the labels.
DIAGONAL = {"mxfp8_e4m3": 1.501e-3, "mxfp6_e2m3": 1.688e-3, "nvfp4": 1.985e-2, "mxfp4": 3.076e-2}
# Both layers together: KL, and the exact Gauss-Newton form with its cross term; then that term alone.
TOGETHER = {
    "mxfp8_e4m3": (2.985e-3, 3.248e-3, 9.9e-5),
    "mxfp6_e2m3": (3.229e-3, 3.490e-3, 5.1e-5),
    "nvfp4": (3.290e-2, 3.570e-2, -1.6e-6),
    "mxfp4": (5.805e-2, 5.669e-2, -4.3e-3),
}


def rounded(matrix: Tensor, format: str) -> Tensor:
    return halfscope.round(matrix.detach().contiguous(), format, axis=-1)


def mean_divergence(reference: Tensor, output: Tensor) -> float:
    before, after = (each.double().log_softmax(-1) for each in (reference, output))
    return float((before.exp() * (before - after)).sum(-1).mean())


class ByHand:
    """Errors of both layers, from products written out."""

    def __init__(self, format: str) -> None:
        model, x = two_layers()
        first, second = model.one.weight.detach(), model.two.weight.detach()
        hidden = x @ first.t()
        self.z, self.hidden, self.second = hidden.relu() @ second.t(), hidden, second
        first_error = rounded(x, format) @ rounded(first, format).t() - hidden
        self.first_error = first_error
        second_error = rounded(hidden.relu(), format) @ rounded(second, format).t() - self.z
        self.moved = (hidden + first_error).relu() @ second.t(), self.z + second_error
        self.tangents = jvp(lambda h: h.relu() @ second.t(), (hidden,), (first_error,))[1], second_error
        self.both_moved = rounded((hidden + first_error).relu(), format) @ rounded(second, format).t()

    def form(self, tangent: Tensor) -> float:
        """Exact Gauss-Newton form, in nats per input."""
        shares = self.z.double().softmax(-1)
        squares = (shares * tangent.double().square()).sum(-1) - (shares * tangent).sum(-1).square()
        return float(squares.mean()) / 2

    @property
    def diagonal(self) -> float:
        """Expected squares of layer 1's gradient, of drawn labels, times squares of its error."""
        shares, second = self.z.double().softmax(-1), self.second.double()
        variances = shares @ second.square() - (shares @ second).square()
        return float(((self.hidden > 0) * variances * self.first_error.double().square()).sum(-1).mean()) / 2

    @property
    def alone(self) -> tuple[float, float, float, float]:
        (first, second), (one, two) = self.moved, map(self.form, self.tangents)
        return mean_divergence(self.z, first), one, mean_divergence(self.z, second), two

    @property
    def together(self) -> tuple[float, float, float]:
        both, parts = self.form(sum(self.tangents)), sum(map(self.form, self.tangents))
        return mean_divergence(self.z, self.both_moved), both, both - parts


@pytest.mark.parametrize("format", FORMATS)
def test_kl_and_exact_form_of_two_layers(format: str) -> None:
    assert ByHand(format).alone == pytest.approx(KNOWN[format], rel=5e-4)


def test_squares_element_by_element() -> None:
    """The score that `sensitivity` is held against in the docs: its labels drawn here, 200 times."""
    model, x = two_layers()
    found = sensitivity(model, [x] * 200, FORMATS)
    generator = torch.Generator().manual_seed(1)

    def labelled(batch: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
        del batch
        return output, torch.multinomial(output.detach().softmax(-1), 1, generator=generator).flatten()

    drawn = squared_errors(found, labelled)
    for format in FORMATS:
        exact = ByHand(format).diagonal
        assert exact == pytest.approx(DIAGONAL[format], rel=0.01)  # the draws' own error
        assert drawn["one", format] == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("format", FORMATS)
def test_kl_and_exact_form_of_both_layers(format: str) -> None:
    """The true trial of the mixture too."""
    assert ByHand(format).together == pytest.approx(TOGETHER[format], rel=5e-4, abs=1e-4)
    assert ByHand(format).together[:2] == pytest.approx(TOGETHER[format][:2], rel=5e-4)
    model, x = two_layers()
    (trial,) = tried(sensitivity(model, [x], [format])._subject, [{"one": format, "two": format}])
    assert trial.mean == pytest.approx(TOGETHER[format][0], rel=5e-4)


def test_drawn_scores_of_a_group_have_the_cross_term() -> None:
    """Inner products of a group's units are added before the square."""
    model, x = two_layers()
    found = sensitivity(model, [x] * 200, FORMATS, groups=[["one", "two"]], seed=1)
    alone = sensitivity(model, [x] * 200, FORMATS, groups=[], seed=1)
    for format, (_, exact, cross) in TOGETHER.items():
        score = found.scores["one + two", format].nats
        assert score == pytest.approx(exact, rel=0.03)
        parts = sum(alone.scores[unit, format].nats for unit in ("one", "two"))
        assert score - parts == pytest.approx(cross, rel=0.2, abs=3e-4)


def test_drawn_scores_of_two_layers() -> None:
    """200 draws of the labels of 256 inputs: their mean is the exact Gauss-Newton form, and within 5 % the KL."""
    model, x = two_layers()
    found = sensitivity(model, [x] * 200, FORMATS, seed=1)
    assert found.units == ("one", "two")
    for format, (kl_one, exact_one, kl_two, exact_two) in KNOWN.items():
        one, two = found.scores["one", format], found.scores["two", format]
        assert one.form == "sequence" and one.samples == 200 * 256
        assert one.nats == pytest.approx(exact_one, rel=0.02) and two.nats == pytest.approx(exact_two, rel=0.02)
        assert one.nats == pytest.approx(kl_one, rel=0.05) and two.nats == pytest.approx(kl_two, rel=0.05)
        assert one.low < exact_one < one.high and two.low < exact_two < two.high
        assert one.token == pytest.approx(one.sequence)  # a sequence has one token here


def test_a_score_is_the_square_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = two_layers()
    once = sensitivity(model, [x], ["nvfp4"], weights_only=True).scores
    image = OperandFormat.image

    def twice(self: OperandFormat, matrix: Tensor, side: str) -> Tensor:
        return matrix + 2 * (image(self, matrix, side) - matrix)

    monkeypatch.setattr(OperandFormat, "image", twice)
    for key, score in sensitivity(model, [x], ["nvfp4"], weights_only=True).scores.items():
        assert score.nats == pytest.approx(4 * once[key].nats, rel=1e-4)


def test_exact_operands_cost_nothing() -> None:
    model, _ = two_layers()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        model.one.weight.copy_(torch.randint(-2, 3, model.one.weight.shape, generator=generator))
    x = torch.randint(-4, 5, (256, 32), generator=generator).float()
    found = sensitivity(model, [x], ["mxfp8_e4m3", "bf16", "fp16"])
    assert all(found.scores["one", format].nats == 0 for format in found.formats)
    assert all(found.scores["two", format].nats > 0 for format in found.formats)


def test_fp32_costs_nothing() -> None:
    model, x = two_layers()
    found = sensitivity(model, [x], ["fp32"])
    assert [score.nats for score in found.scores.values()] == [0, 0]
    assert str(found.report).startswith("No format changes a unit's result.")


@pytest.mark.parametrize("of_tokens", [False, True])
def test_planted_powers_of_two_move_their_units_to_the_top(of_tokens: bool) -> None:
    torch.manual_seed(0)
    model = Transformer(of_tokens=of_tokens).eval()
    batches = tokens(4, 32)
    with torch.no_grad():
        before = model(batches[0])
        healthy = sensitivity(model, batches, ["nvfp4"], groups=[])
        plant(model, 1)
        assert torch.equal(model(batches[0]), before)
    planted = sensitivity(model, batches, ["nvfp4"], groups=[])
    names = {f"blocks.1.attention.{name}" for name in "qkv"}
    top = [name for name, _ in planted.ranked("nvfp4")]
    assert names & set(top[:2]) and "blocks.1.attention.v" in top[:2]
    for name in names:
        assert planted.scores[name, "nvfp4"].nats > 8 * healthy.scores[name, "nvfp4"].nats
    assert "blocks.1.attention.v" in planted.report.findings[0].change


@pytest.mark.parametrize(
    ("loss", "divergence"),
    [
        ("gaussian", lambda z, y: float((z - y).double().square().mean()) / 2),
        (
            "bernoulli",
            lambda z, y: float(
                torch.distributions.kl_divergence(
                    *(torch.distributions.Bernoulli(logits=each.double()) for each in (z, y))
                ).mean()
            ),
        ),
    ],
)
def test_other_losses(loss: str, divergence: Callable[[Tensor, Tensor], float]) -> None:
    """Per element of the output; predicted beside the divergence of the rounded product."""
    model, x = two_layers()
    found = sensitivity(model, [x] * 20, ["mxfp8_e4m3", "nvfp4"], loss=loss)
    with torch.no_grad():
        hidden = model.one(x).relu()
        for format in found.formats:
            output = rounded(hidden, format) @ rounded(model.two.weight, format).t()
            assert found.scores["two", format].nats == pytest.approx(divergence(model(x), output), rel=0.1)
