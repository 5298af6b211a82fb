"""Public cases that other doors than `diagnose` answer: FP16 weights and a scaler, TF32, statistics, histograms."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

import halfscope
from halfscope.torch import GradScaler, check, diagnose, emulate, watch

pytestmark = pytest.mark.torch


def test_fp16_weights_handed_to_a_scaler_are_refused_with_the_remedy() -> None:
    """Public case 3."""
    model = nn.Linear(4, 1).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    with pytest.raises(ValueError, match="FP16 gradients, which unscaling would flush; keep the weights in FP32"):
        GradScaler("dynamic").unscale_(optimizer)
    with watch(model, optimizer=optimizer) as watched:
        for parameter in model.parameters():
            parameter.grad = torch.full_like(parameter, 1e-4)
        optimizer.step()
    assert "did not move" in watched.verdict
    assert "keep an FP32 master copy" in watched.verdict


class Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.eye(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.w


@pytest.mark.parametrize(("rounding", "result"), [("tf32/nearest_away", 1025.0), ("tf32", 1024.0)])
def test_tf32_rounds_its_operands_as_told(rounding: str, result: float) -> None:
    """Public case 9: a GPU gave 1025, ties away from zero."""
    model, x = Product(), torch.tensor([[1024.5, 0.0]])
    with torch.no_grad(), emulate(model, {"weight": rounding, "activation": rounding}, compare_steps=(1,)):
        assert model(x)[0, 0].item() == result


@pytest.mark.parametrize(
    ("policy", "order"),
    [({"weight": "tf32", "activation": "tf32"}, None), ("fp32", "tf32_tensor_core(ampere)")],
)
def test_tf32_is_named_with_its_remedy(policy: str | dict[str, str], order: str | None) -> None:
    """Public case 9: cause and remedy, in words."""
    model = Product()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, policy, order=order, optimizer=optimizer) as emulated:
        model(torch.tensor([[1024.5, 0.0]])).sum().backward()
        optimizer.step()
    assert "TF32 rounds each operand to 10 fraction bits" in emulated.verdict
    assert 'torch.set_float32_matmul_precision("highest")' in emulated.verdict
    with emulate(model, "fp32", optimizer=optimizer) as exact:
        optimizer.step()
    assert "TF32" not in exact.verdict


def test_statistics_of_narrow_tensors_are_exact() -> None:
    """Public case 53: a mean in BF16 stalls at 256, a norm in FP16 overflows."""
    ones = halfscope.Histogram(torch.ones(768, dtype=torch.bfloat16).float(), format="bf16")
    assert (ones.elements, ones.max_abs) == (768, 1.0)
    wide = torch.cat([torch.full((1000,), 1e-3), torch.full((1000,), 3e4)]).half()
    found = halfscope.Histogram(wide.float())
    assert found.elements == 2000 and found.infinities == 0
    assert math.isclose(found.max_abs, 30000.0)


def test_a_histogram_survives_infinities_and_nan() -> None:
    """Public case 6: they are counted, and bins are those of the other elements."""
    mixed = torch.tensor([1e-7, -3e-3, math.inf, math.nan, 0.0])
    found = halfscope.Histogram(mixed)
    assert (found.elements, found.infinities, found.nans, found.zeros, found.nonzero) == (5, 1, 1, 1, 2)
    assert found.what_if(1.0).flushed == 0
    model = Product()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, every=1, optimizer=optimizer) as watched:
        for value in (1.0, math.inf, 1.0):
            model.w.grad = torch.full((2, 2), value)
            optimizer.step()
    assert watched.steps == 3
    assert watched.histograms("weight_gradient")["w"].infinities == 4
    verdict = watched.verdict
    assert "Not judged: infinite or NaN values, which are there before any scale: w (4)" in verdict
    assert "A loss scaler skips a step with such gradients; np.histogram needs x[np.isfinite(x)]" in verdict


DOORS = {
    "emulate": lambda model, **options: emulate(model, "fp16", **options),
    "diagnose": lambda model, **options: diagnose(model, lambda: model(torch.ones(2, 4)).sum(), **options),
    "check": lambda model, **options: check(model, lambda: model(torch.ones(2, 4)).sum(), **options),
}


@pytest.mark.parametrize("door", DOORS)
def test_float64_weights_are_refused(door: str) -> None:
    """No format is computed for them, so that every step would be as in FP32."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4).double())
    with pytest.raises(TypeError, match=rf"^{door}: '1.weight' is float64, which is not rounded; give model.float\(\)"):
        DOORS[door](model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize("door", DOORS)
def test_a_door_names_itself_where_the_optimizer_is_none(door: str) -> None:
    with pytest.raises(TypeError, match=f"^{door}: optimizer"):
        DOORS[door](nn.Linear(4, 4), optimizer=3)


def test_nested_tensors_are_not_emulated() -> None:
    model = nn.Linear(4, 3)
    given = torch.nested.nested_tensor([torch.randn(2, 4), torch.randn(5, 4)], layout=torch.jagged)
    words = "^emulate: aten.linear.default of a nested tensor, which is not emulated; give a padded one, and a mask$"
    emulation = emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    with emulation, pytest.raises(TypeError, match=words):
        model(given)
