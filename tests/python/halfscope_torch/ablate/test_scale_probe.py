"""probe_scales: gradients at other loss scales, beside products that are cast by hand."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from halfscope.torch import probe_scales

VERSION = tuple(map(int, torch.__version__.split(".")[:2]))


def network(seed: int = 0) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    return torch.nn.Sequential(
        torch.nn.Linear(20, 32),
        torch.nn.BatchNorm1d(32),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.25),
        torch.nn.Linear(32, 5),
    )


def closure(model: torch.nn.Module, weight: float = 1.0):
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(64, 20, generator=generator)
    labels = torch.randint(5, (64,), generator=generator)
    return lambda: weight * torch.nn.functional.cross_entropy(model(inputs), labels)


def test_gradients_that_fp16_loses_come_back_with_the_scale() -> None:
    model = network()
    probes = probe_scales(model, closure(model, 2.0**-20), [1, 2.0**10, 2.0**20])
    assert [probe.scale for probe in probes] == [1.0, 2.0**10, 2.0**20]
    assert probes[0].error > 0.5 > 0.05 > probes[2].error
    assert all(probe.finite for probe in probes)
    assert {tensor.tensor for tensor in probes[2].tensors} <= {name for name, _ in model.named_parameters()}
    assert min(tensor.cosine for tensor in probes[2].tensors if tensor.relative_error < 0.1) > 0.99


def test_a_scale_that_overflows_is_not_finite() -> None:
    model = network()
    (probe,) = probe_scales(model, closure(model), [2.0**30])
    assert not probe.finite
    assert probe.error == float("inf")


def test_a_loss_that_only_fp16_makes_infinite_is_not_finite() -> None:
    layer = torch.nn.Linear(4, 1)
    inputs = torch.full((1, 4), 60000.0)
    (probe,) = probe_scales(layer, lambda: (layer(inputs) * layer(inputs)).sum(), [1])
    assert not probe.finite


def test_a_single_product_errs_as_its_cast_operands() -> None:
    layer = torch.nn.Linear(8, 1, bias=False)
    inputs = torch.randn(1, 8, generator=torch.Generator().manual_seed(0))
    scale = 2.0**-20  # so that some gradients are subnormal
    (probe,) = probe_scales(layer, lambda: layer(inputs).float().sum(), [scale])
    upstream = torch.tensor(scale).half()
    by_hand = (upstream * inputs.half()).double() / scale
    expected = ((by_hand - inputs.double()).norm() / inputs.double().norm()).item()
    assert probe.tensors[0].relative_error == pytest.approx(expected, rel=1e-6)
    assert 0.001 < expected < 0.5


def test_training_goes_on_as_without_a_probe() -> None:
    model, other = network(), network()
    loss, other_loss = closure(model), closure(other)
    torch.manual_seed(7)
    loss().backward()
    probe_scales(model, loss, [1, 1024])
    loss().backward()
    torch.manual_seed(7)
    other_loss().backward()
    other_loss().backward()
    for one, two in zip([*model.parameters(), *model.buffers()], [*other.parameters(), *other.buffers()]):
        assert torch.equal(one, two)
        assert one.grad is two.grad is None or torch.equal(one.grad, two.grad)
    assert model.training


@pytest.mark.parametrize(
    ("scales", "loss", "says"),
    [
        ([], None, "positive"),
        ([0], None, "positive"),
        ([float("nan")], None, "positive"),
        ([1], lambda: torch.ones(2, requires_grad=True), "one element"),
        ([1], lambda: 3.0, "one element"),
        ([1], lambda: torch.tensor(float("nan"), requires_grad=True), "finite"),
    ],
)
def test_what_cannot_be_probed_is_refused(scales: list[float], loss, says: str) -> None:
    model = network()
    with pytest.raises(ValueError, match=says):
        probe_scales(model, loss or closure(model), scales)


def test_a_model_without_weights_is_refused() -> None:
    with pytest.raises(ValueError, match="no parameter"):
        probe_scales(torch.nn.ReLU(), lambda: torch.ones(()))
