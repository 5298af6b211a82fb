"""`Sensitivity.outlier_channels`: planted channels, with errors computed by NumPy and the package's casts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

import halfscope
from halfscope.torch import ChannelCost, OutlierChannels, sensitivity
from json_schema import faults
from scored_networks import Transformer, tokens

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

# Formats, and their elements where these take scales.
FORMATS = {
    "nvfp4": "fp4_e2m1", "mxfp4": "fp4_e2m1", "mxfp6_e2m3": "fp6_e2m3", "mxfp8_e4m3": "fp8_e4m3", "bf16": None,
    "fp8_e5m2": "fp8_e5m2", "fp8_1x128": "fp8_e4m3", "block(fp4_e2m1, 1x64, e8m0/rceil)": "fp4_e2m1",
    "nvfp4/torchao": "fp4_e2m1", "fp16": None,
}  # fmt: skip
ERRORS = ("whole", "others", "without", "row", "block", "tensor")
SEEDS = range(150)


@dataclass
class Planted:
    """A layer with outliers in its input and its weight, at random places and of random sizes."""

    seed: int

    def __post_init__(self) -> None:
        draw = np.random.default_rng(self.seed)
        self.format = list(FORMATS)[self.seed % len(FORMATS)]
        channels = int(draw.integers(3, 90))
        rows = draw.integers(1, 40, size=draw.integers(1, 4))
        self.weight = draw.standard_normal((int(draw.integers(1, 40)), channels)).astype(np.float32)
        self.batches = [draw.standard_normal((row, channels)).astype(np.float32) for row in rows]
        for operands in (self.batches, [self.weight]):
            places = draw.choice(channels, size=draw.integers(0, min(3, channels)), replace=False)
            for place, size in zip(places, 2.0 ** draw.uniform(0, 9, size=len(places))):
                for operand in operands:
                    operand[:, place] *= np.float32(size)

    def found(self) -> OutlierChannels:
        layer = nn.Linear(self.weight.shape[1], self.weight.shape[0])
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(self.weight))
        return sensitivity(layer, [torch.from_numpy(batch) for batch in self.batches], [self.format], "gaussian"
                           ).outlier_channels()  # fmt: skip

    def expected(self, side: str) -> dict[str, object]:
        matrices = self.batches if side == "left" else [self.weight]
        maxima = np.abs(np.concatenate(matrices)).max(0)
        median = np.median(maxima)
        outliers = {int(at) for at in np.flatnonzero(maxima >= 4 * median)} | {int(maxima.argmax())}
        numbers = {"channel": int(maxima.argmax()), "ratio": maxima.max() / median, "outliers": outliers}
        return {**numbers, **errors_of(matrices, self.format, outliers)}


def errors_of(matrices: list[np.ndarray], format: str, outliers: set[int]) -> dict[str, float]:
    """Errors by name, of matrices that have a cast each."""
    kept = [at for at in range(matrices[0].shape[1]) if at not in outliers]
    element = FORMATS[format]
    blocks = {"row": "1x4096", "block": "1x32", "tensor": "4096x4096"}
    scaled = {kind: f"block({element}, {size}, fp32/te)" for kind, size in blocks.items()}
    zeroed = [np.where(np.isin(np.arange(matrix.shape[1]), kept), matrix, np.float32(0)) for matrix in matrices]
    return {
        "whole": error(matrices, format, list(range(matrices[0].shape[1]))),
        "others": error(matrices, format, kept),
        "without": error(zeroed, format, kept),
        **{kind: error(matrices, name, kept) if element else math.nan for kind, name in scaled.items()},
    }


def error(matrices: list[np.ndarray], format: str, columns: list[int]) -> float:
    images = [halfscope.round(matrix, format) for matrix in matrices]
    off = sum(np.square((image - matrix.astype(float))[:, columns]).sum() for image, matrix in zip(images, matrices))
    norm = sum(np.square(matrix.astype(float)[:, columns]).sum() for matrix in matrices)
    return math.sqrt(off / norm) if norm else 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_errors_of_planted_channels_are_those_of_numpy(seed: int) -> None:
    planted = Planted(seed)
    found = planted.found()
    assert {each.side for each in found.operands} == {"left", "right"}
    for each in found.operands:
        expected = planted.expected(each.side)
        assert (each.channel, set(each.outliers)) == (expected["channel"], expected["outliers"])
        assert each.outliers[0] == each.channel and each.ratio == pytest.approx(expected["ratio"], rel=1e-6)
        for name in ERRORS:
            assert getattr(each, name) == pytest.approx(expected[name], rel=1e-9, nan_ok=True), name


@pytest.mark.parametrize("seed", range(40))
def test_a_large_channel_is_the_first_line_however_small_its_error_is(seed: int) -> None:
    """By the error over the whole norm its operand is the best of all."""
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    channel, layer, channels = int(draw.integers(64)), int(draw.integers(3)), 64
    model = nn.Sequential(*(nn.Linear(channels, channels) for _ in range(3)))
    with torch.no_grad():
        for other in model:
            other.bias.zero_()
        size = 2.0 ** int(draw.integers(8, 14))
        if layer:
            model[layer - 1].weight[channel] *= size
        model[layer].weight[:, channel] /= 1024
    batches = [torch.randn(32, channels) for _ in range(2)]
    if not layer:
        for batch in batches:
            batch[:, channel] *= size
    found = sensitivity(model, batches, ["nvfp4"], "gaussian").outlier_channels()
    first = found.operands[0]
    inputs = [each for each in found.operands if each.side == "left"]
    assert (first.unit, first.side, first.channel) == (f"{layer}", "left", channel) and first.stands_out
    assert first.whole == min(each.whole for each in inputs) < first.others / 5
    text = str(found.report)
    assert text.startswith(f"Multiply channel {channel} of the input of {layer} apart from nvfp4, in BF16\n")
    assert "hides it" in text and found.to_pandas().index[0] == first.operand


def convolved(images: torch.Tensor, layer: nn.Conv2d) -> list[np.ndarray]:
    """Patches by group (rows, taps and channels), taps first."""
    taps = layer.weight[0, 0].numel()
    patches = nn.functional.unfold(images, layer.kernel_size, padding=layer.padding, stride=layer.stride)
    rows = patches.transpose(1, 2).reshape(-1, layer.groups, layer.in_channels // layer.groups, taps)
    return [rows[:, group].transpose(1, 2).flatten(1).numpy() for group in range(layer.groups)]


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_a_channel_of_a_convolution_has_all_its_taps(groups: int) -> None:
    torch.manual_seed(groups)
    layer, images = nn.Conv2d(8, 16, 3, padding=1, stride=2, groups=groups), torch.randn(4, 8, 9, 7)
    images[:, 5] *= 100
    with torch.no_grad():
        layer.weight[:, 5 % (8 // groups)] *= 50
    found = sensitivity(layer, [images], ["nvfp4"], "gaussian").outlier_channels()
    (each,) = [each for each in found.operands if each.side == "left"]
    assert (each.channel, each.outliers, each.operand) == (5, (5,), "input of the model")
    size = 8 // groups
    kept = [np.tile([group * size + at != 5 for at in range(size)], 9) for group in range(groups)]
    off = norm = without = 0.0
    for matrix, columns in zip(convolved(images, layer), kept):
        exact = matrix.astype(float)
        zeroed = np.where(columns, matrix, np.float32(0))
        off += np.square((halfscope.round(matrix, "nvfp4") - exact)[:, columns]).sum()
        without += np.square((halfscope.round(zeroed, "nvfp4") - exact)[:, columns]).sum()
        norm += np.square(exact[:, columns]).sum()
    assert each.others == pytest.approx(math.sqrt(off / norm), rel=1e-9)
    assert each.without == pytest.approx(math.sqrt(without / norm), rel=1e-9)
    (weight,) = [each for each in found.operands if each.side == "right"]
    assert weight.channel % size == 5 % size and set(weight.outliers) >= ({5} if groups == 1 else set())


def test_operands_have_names_that_a_model_has() -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(11, 16), layer, nn.Linear(16, 11))
    found = sensitivity(model, list(torch.randint(11, (2, 4, 6))), ["mxfp4", "bf16"])
    inside = [f"1.{name}" for name in ("self_attn.in_proj_weight", "self_attn.out_proj", "linear1", "linear2")]
    names = {f"{side} of {name}" for name in [*inside, "2"] for side in ("input", "weight")} | {"weight of 0"}
    assert {each.operand for each in found.outlier_channels("bf16").operands} == names


class SharedInput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(16, 16) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.q(x) * self.k(x) + self.v(x))


def test_an_input_that_several_layers_multiply_is_one_operand() -> None:
    torch.manual_seed(0)
    found = sensitivity(SharedInput(), [torch.randn(8, 16)], ["mxfp4"], "gaussian").outlier_channels()
    inputs = [each.operand for each in found.operands if each.side == "left"]
    assert sorted(inputs) == ["input of out", "input of q + k + v"] and len(found.operands) == 6


def test_weights_of_one_parameter_in_parts_are_one_operand() -> None:
    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.attention(x, x.flip(1), x.flip(1) + 1)[0]

    torch.manual_seed(0)
    model, x = Cross(), torch.randn(4, 5, 16)
    found = sensitivity(model, [x, x], ["mxfp4"], "gaussian").outlier_channels()
    (weight,) = [each for each in found.operands if each.operand == "weight of attention.in_proj_weight"]
    whole = error(list(model.attention.in_proj_weight.detach().numpy().reshape(3, 16, 16)), "mxfp4", list(range(16)))
    assert weight.whole == pytest.approx(whole, rel=1e-9)


def test_no_channel_stands_out() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(64, 8), torch.randn(64, 64)
    found = sensitivity(model, [x], ["mxfp4", "bf16"], "gaussian")
    text = str(found.outlier_channels().report)
    assert text.startswith("No channel stands out in mxfp4: channel ") and "and no other has more" in text
    x[:, 7] *= 100
    found = sensitivity(model, [x], ["mxfp4", "bf16"], "gaussian")
    text = " ".join(str(found.outlier_channels("bf16").report).split())
    assert text.startswith("No channel stands out in bf16: channel 7 of the input of the model has ")
    assert "but the others' error is" in text and len(found.outlier_channels("bf16").report) == 0
    assert found.outlier_channels().report.findings[0].about.channel == 7


def test_a_channel_beyond_the_format_stands_first() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(64, 8), torch.randn(64, 64)
    x[:, 7] *= 1e6
    found = sensitivity(model, [x], ["fp16"], "gaussian").outlier_channels("fp16")
    assert found.operands[0].cost == math.inf and found.operands[0].stands_out
    assert ", and not finite in fp16" in str(found.report)
    assert "fp16" not in str(sensitivity(model, [x], ["bf16"], "gaussian").outlier_channels().report)


def test_two_outliers_are_taken_away_together() -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 64)
    x[:, 7], x[:, 9] = 300 * x[:, 7], 1000 * x[:, 9]
    found = sensitivity(nn.Linear(64, 8), [x], ["mxfp4"], "gaussian").outlier_channels()
    assert found.operands[0].outliers == (9, 7) and found.operands[0].without < 0.2 < found.operands[0].others
    assert str(found.report).startswith("Multiply channels 9, 7 of the input of the model apart from mxfp4")


def test_the_report_has_the_forms_of_the_others() -> None:
    torch.manual_seed(0)
    model = Transformer(blocks=3)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    scored = sensitivity(model, tokens(2, 8), ["mxfp4", "nvfp4"])
    state = torch.get_rng_state()
    found = scored.outlier_channels("nvfp4")
    assert torch.equal(state, torch.get_rng_state()) and model.training
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    assert list(faults(found.report.to_dict())) == [] and found.report.to_dict()["report"] == "outlier_channels"
    assert f"and {len(found.operands) - 10} operands with less" in str(found.report)
    frame = found.to_pandas()
    assert len(frame) == len(found.operands) and (frame["cost"] == frame["others"] - frame["without"]).all()
    assert isinstance(found.operands[0], ChannelCost) and found.verdict == found.report.verdict
    assert scored.outlier_channels("nvfp4").operands == found.operands


def test_weights_alone() -> None:
    torch.manual_seed(0)
    found = sensitivity(nn.Linear(32, 8), [torch.randn(8, 32)], ["mxfp4"], "gaussian", weights_only=True)
    assert [each.side for each in found.outlier_channels().operands] == ["right"]


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.isfinite(), self.layer(x), 0.0)


def test_arguments_that_are_refused() -> None:
    torch.manual_seed(0)
    x = torch.randn(8, 8)
    found = sensitivity(nn.Linear(8, 8), [x], ["mxfp4", "mxfp4+hadamard"], "gaussian")
    with pytest.raises(ValueError, match="outlier_channels: format 'bf16'; give one of mxfp4, mxfp4"):
        found.outlier_channels("bf16")
    with pytest.raises(ValueError, match="mxfp4.hadamard mixes channels before it rounds; give a format without"):
        found.outlier_channels("mxfp4+hadamard")
    x[3] = math.inf
    with pytest.raises(ValueError, match="outlier_channels: the input of layer is not finite in FP32"):
        sensitivity(Padded(), [x], ["mxfp4"], "gaussian").outlier_channels()
