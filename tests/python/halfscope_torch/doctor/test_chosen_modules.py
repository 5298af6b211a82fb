"""A search that is narrowed to modules by their names: it tries their calls alone, and says so."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn

from halfscope.torch import diagnose
from halfscope.torch.doctor.chosen_modules import chosen_modules

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Healthy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return h + self.down(torch.tanh(self.up(h)))


class Squared(nn.Module):
    """Its square overflows in FP16."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        product = (self.up(h) * 900 + 900) * (self.gate(h) * 900 + 900)
        return h + torch.tanh(product / 810000)


def network(seed: int) -> tuple[Any, Any, int]:
    """A model, its loss, and the number of the layer that overflows."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    depth = rng.randint(3, 6)
    at = rng.randrange(depth)
    model = nn.Module()
    model.layers = nn.ModuleList(Squared() if index == at else Healthy() for index in range(depth))
    inputs = torch.randn(4, 8)

    def loss() -> torch.Tensor:
        h = inputs
        for layer in model.layers:
            h = layer(h)
        return h.square().mean()

    return model, loss, at


def words(report: object) -> str:
    return " ".join(str(report).split())


@pytest.mark.parametrize("seed", range(6))
def test_the_module_that_overflows_is_healed_in_fewer_runs(seed: int) -> None:
    model, loss, at = network(seed)
    whole, narrowed = diagnose(model, loss), diagnose(model, loss, only=f"layers.{at}")
    assert [each.change for each in narrowed.findings] == [each.change for each in whole.findings] != []
    assert all(each.kind for each in narrowed.findings) and narrowed.runs <= whole.runs
    assert f"calls of layers.{at} alone: other modules" in words(narrowed) and " alone: " not in words(whole)


@pytest.mark.parametrize("seed", range(6))
def test_another_module_heals_nothing_and_nothing_else_is_tried(seed: int) -> None:
    model, loss, at = network(seed)
    other = next(index for index in range(len(model.layers)) if index != at)
    report = diagnose(model, loss, only=f"layers.{other}")
    assert [each.kind for each in report.findings] == [""] and not report.is_healthy
    assert f"FP32 in all calls of layers.{other}, in inputs and weights that these take" in words(report)
    assert "overflows" in words(report) and f"of layers.{other} alone" in words(report)


def test_a_loss_scale_is_none_of_a_module() -> None:
    torch.manual_seed(0)
    model, inputs = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), torch.randn(4, 8)

    def loss() -> torch.Tensor:
        return model(inputs).float().square().mean() * 1e-7

    assert [each.kind for each in diagnose(model, loss).findings] == ["loss scale"]
    assert "loss scale" not in {each.kind for each in diagnose(model, loss, only="0").findings}


def test_patterns_choose_as_those_of_watch() -> None:
    model = network(0)[0]
    layers = dict(model.named_modules())
    assert chosen_modules(model, "layers.1").ids == {id(layers["layers.1"])}
    assert chosen_modules(model, ["layers.0", "*.1"]).ids == {id(layers[name]) for name in ("layers.0", "layers.1")}
    assert str(chosen_modules(model, ("layers.0", "*.1"))) == "layers.0 and *.1"


@pytest.mark.parametrize("only", [3, [], [None]])
def test_what_is_no_pattern_is_refused(only: Any) -> None:
    with pytest.raises(TypeError, match=r"^diagnose: only=.*; give a pattern of modules' names, or several, [^\n]*$"):
        diagnose(nn.Linear(2, 2), lambda: 0, only=only)


def test_a_name_that_no_module_has_is_refused_with_names_near_it() -> None:
    model, loss, _ = network(1)
    with pytest.raises(ValueError, match=r"^diagnose: [^\n]*no module 'layer.1'; near it: [^\n]*layers\.1[^\n]*$"):
        diagnose(model, loss, only="layer.1")


@pytest.mark.parametrize("options", [{"quick": True}, {"format": "mxfp4"}, {"order": "split_k(2, fp16)"}])
def test_only_is_refused_where_nothing_is_searched(options: dict[str, Any]) -> None:
    model, loss, _ = network(1)
    with pytest.raises(ValueError, match=r"^diagnose: only= narrows a search, and [^\n]*$"):
        diagnose(model, loss, only="layers.1", **options)
