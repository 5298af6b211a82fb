"""Formats whose inputs have one scale in all batches, beside those whose scale is each tensor's own."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from halfscope.torch import sensitivity
from halfscope.torch.sensitivity.operand_images import LEFT, RIGHT, OperandFormat, StaticFormat
from scored_networks import convolutions, two_layers

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
STATIC = {"fp8_e4m3+static": "fp8_e4m3+current", "fp8_e5m2+static": "fp8_e5m2+current", "nvfp4+static": "nvfp4"}


def random_batches(seed: int) -> list[Tensor]:
    """Rows of one width, with sizes that differ by powers of two."""
    generator = torch.Generator().manual_seed(seed)
    width, count = (int(torch.randint(1, 70, (), generator=generator)) for _ in range(2))
    sizes = torch.randint(-12, 12, (5,), generator=generator)
    return [torch.randn(count, width, generator=generator) * 2.0 ** int(size) for size in sizes]


@pytest.mark.parametrize("name", STATIC)
def test_images_are_those_of_all_batches_as_one_tensor(name: str) -> None:
    """Two hundred generated calibrations; the same cast on all rows together has the scale of their maximum."""
    static, dynamic = OperandFormat(name), OperandFormat(STATIC[name])
    differ = 0
    for seed in range(200):
        batches = random_batches(seed)
        format = StaticFormat(static, float(torch.cat(batches).abs().max()))
        together = dynamic.image(torch.cat(batches), LEFT).split(len(batches[0]))
        for batch, expected in zip(batches, together):
            assert torch.equal(format.image(batch, LEFT), expected)
            assert torch.equal(format.image(batch.reshape(len(batch), 1, -1), LEFT)[:, 0], expected)
            assert torch.equal(format.image(batch, RIGHT), dynamic.image(batch, RIGHT))
            differ += not torch.equal(expected, dynamic.image(batch, LEFT))
    assert differ > 200


@pytest.mark.parametrize("name", STATIC)
def test_larger_numbers_saturate(name: str) -> None:
    format = StaticFormat(OperandFormat(name), 3.0)
    x = torch.tensor([[1.0, 3.0, 3.5, -100.0]])
    assert format.image(x, LEFT).tolist()[0][1:] == pytest.approx([3.0, 3.0, -3.0])


def test_one_batch_has_the_scores_of_its_own_scale() -> None:
    model, x = two_layers()
    found = sensitivity(model, [x], [*STATIC, *STATIC.values()])
    for (unit, format), score in found.scores.items():
        assert score == found.scores[unit, STATIC.get(format, format)]


def test_a_batch_of_another_size_costs_the_others() -> None:
    """NVFP4's scales of blocks are FP8 numbers, which run out below the scale of a tensor."""
    model, x = two_layers()
    batches = [x[:128], x[128:], x[:128] * 2.0**18]
    found = sensitivity(model, batches, ["nvfp4", "nvfp4+static"], loss="gaussian")
    few = sensitivity(model, batches[:2], ["nvfp4", "nvfp4+static"], loss="gaussian")
    assert few.scores["one", "nvfp4+static"].nats == pytest.approx(few.scores["one", "nvfp4"].nats, rel=0.2)
    mean = [found._measured.groups["one"].sequence[at] ** 2 for at in (0, 1)]
    assert all(each[:, 1].mean() > 3 * each[:, 0].mean() for each in mean)


def test_convolutions_have_the_scale_of_their_images() -> None:
    torch.manual_seed(0)
    model, images = convolutions(), [size * torch.randn(4, 3, 9, 9) for size in (1, 4, 2)]
    found = sensitivity(model, images, list(STATIC))
    assert not found.not_finite
    maxima = found._subject.formats["nvfp4+static"].maxima
    assert maxima["0"] == max(float(each.abs().max()) for each in images) and set(maxima) == set(found.units)


def test_a_mixture_with_static_scales() -> None:
    pytest.importorskip("scipy", reason="SciPy is not installed")
    model, x = two_layers()
    batches = list(x.split(32))
    found = sensitivity(model, batches, ["nvfp4+static", "fp8_e4m3+static"])
    mixture = found.choose(bits=6)
    assert set(mixture.formats.values()) == {"nvfp4+static", "fp8_e4m3+static"}
    text = str(mixture.report)
    assert text.startswith("Quantize the units so, with the calibrated scales where they are static:\nformats = {")
    with pytest.raises(ValueError, match="emulate has no static scales; .formats names the formats"):
        _ = mixture.exceptions
    for runtime in ("modelopt", "compressed-tensors"):
        assert mixture.config(runtime)
    schemes = mixture.config("compressed-tensors")["config_groups"].values()
    assert {each["input_activations"]["dynamic"] for each in schemes} == {"local", False}
    with pytest.raises(ValueError, match="torchao has "):
        mixture.config("torchao")
    with pytest.raises(ValueError, match="nvfp4.static has the scale of all batches; give a format whose scales"):
        found.outlier_channels()
    dynamic = sensitivity(model, batches, ["nvfp4+static", "nvfp4"])
    assert dynamic.outlier_channels().format == "nvfp4"


@pytest.mark.parametrize("name", ["mxfp4+static", "mxfp8_e4m3+static", "fp8_e4m3+current+static"])
def test_formats_without_a_scale_of_the_tensor_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="has no scale of the whole tensor to keep; give one that has"):
        sensitivity(two_layers()[0], [torch.zeros(4, 32)], [name])


def test_an_input_of_zeros_gives_no_scale() -> None:
    with pytest.raises(ValueError, match="the input of 'one' is zero in all batches"):
        sensitivity(two_layers()[0], [torch.zeros(4, 32)], ["nvfp4+static"])
