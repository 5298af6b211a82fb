"""Ordinary models and closures that once ended a diagnosis with an exception or a wrong sentence."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import diagnose, emulate

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Cast(nn.Module):
    """Casts back to the type of another tensor, in each way that PyTorch has."""

    def __init__(self, cast: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layer, self.cast = nn.Linear(4, 4), cast

    def forward(self, x: Any) -> Any:
        x = self.layer(x)
        return self.cast(x.float() * 1.5, x)


CASTS: dict[str, Callable[[Any, Any], Any]] = {
    "type_as": lambda wide, x: wide.type_as(x),
    "type_as of the input": lambda wide, x: wide.type_as(other=x),
    "to a tensor": lambda wide, x: wide.to(x),
    "to a type": lambda wide, x: wide.to(x.dtype),
    "type": lambda wide, x: wide.type(x.dtype),
}


@pytest.mark.parametrize("policy", ["fp16", "bf16", "autocast_cuda", "fp16_pure"])
def test_casts_back_are_one_cast(policy: str) -> None:
    x, outputs = torch.randn(3, 4), []
    for cast in CASTS.values():
        torch.manual_seed(0)
        model = Cast(cast)
        diagnose(model, lambda: model(x).sum(), policy)  # noqa: B023
        with emulate(model, policy):
            outputs.append(model(x).detach())
    assert all(torch.equal(output, outputs[0]) for output in outputs)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("factors", [1, 2, 3])
def test_a_product_of_tensors_of_any_rank_overflows(shape: tuple[int, ...], factors: int) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = nn.Parameter(torch.full(shape, 300.0))

        def forward(self, x: Any) -> Any:
            for _ in range(factors):
                x = x * self.factor
            return x

    model = Scaled()
    fault = diagnose(model, lambda: model(torch.full(shape, 300.0)).sum(), "fp16_mixed").fault
    assert fault is not None and fault.kind == "product"
    assert fault.value == pytest.approx(300.0**2)


@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("value", [7e4, 1e5, -3e5])
def test_an_input_that_the_format_does_not_have(value: float, hides: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh() if hides else nn.Identity())
    found = diagnose(model, lambda: model(torch.full((1, 2), value)).mean(), "fp16_mixed")
    assert found.findings and "the input" in str(found.findings[0])
    assert sum("a cast overflows" in str(each) for each in found.findings) == 1


def test_an_operation_without_a_rule_is_named_where_it_makes_numbers() -> None:
    class Solves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.eye(3) + 0.125)

        def forward(self, x: Any) -> Any:
            counts = torch.histc(torch.arange(4.0), 4)
            return torch.linalg.solve(self.weight, x) + torch.lgamma(x.abs() + 1) + counts.sum()

    model, x = Solves(), torch.randn(3, 2)
    text = str(diagnose(model, lambda: model(x).sum(), "fp16_mixed"))
    assert "No rule for " in text and "linalg_solve_ex" in text and "lgamma" in text
    assert "histc" not in text
    with emulate(model, "fp16_mixed") as emulated:
        output = model(x)
    assert "lgamma" in emulated.without_rule and "lgamma" in emulated.verdict
    assert torch.equal(output, output.half().float())
    says = "no rule for the operation .* without strict=True"
    with pytest.raises(RuntimeError, match=says), emulate(model, "fp16_mixed", strict=True):
        model(x)


class Output(types.SimpleNamespace):
    """A model's output, as transformers has them."""


class Trap(nn.Module):
    """Finite forward, infinite gradient in FP16: 1 / (2 sqrt(x)) of a number that is 0 there."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(1e-9))

    def forward(self) -> Any:
        return (self.weight * torch.ones(3)).sqrt().sum()


CLOSURES: dict[str, Callable[[Any], Any]] = {
    "a tensor": lambda loss: loss,
    "a tuple": lambda loss: (torch.zeros(2), loss, 3),
    "a list": lambda loss: [loss, "text"],
    "a dictionary": lambda loss: {"logits": torch.zeros(2, 2), "loss": loss},
    "another dictionary": lambda loss: {"step": torch.tensor(1.0), "total": loss},
    "an output": lambda loss: Output(loss=loss, logits=torch.zeros(2)),
}


@pytest.mark.parametrize("name", CLOSURES)
def test_the_loss_is_found_in_what_a_closure_returns(name: str) -> None:
    model = Trap()
    found = diagnose(model, lambda: CLOSURES[name](model()), "fp16_mixed")
    assert found.fault is not None and found.fault.region == "backward"
    searched = diagnose(model, lambda: CLOSURES[name](model()))
    assert [alarm.distance.group for alarm in searched.alarms if alarm.reason == "not finite"] == ["gradient"]
    assert "backward pass was not looked at" not in str(found)


@pytest.mark.parametrize("result", [None, 0.5, (), {}, "loss", 7])
def test_without_a_loss_the_report_says_that_no_backward_pass_was_looked_at(result: Any) -> None:
    model = Trap()

    def step() -> Any:
        model()
        return result

    assert "the backward pass was not looked at" in " ".join(str(diagnose(model, step)).split())


@pytest.mark.parametrize("policy", ["fp16", "bf16", "autocast_cuda"])
@pytest.mark.parametrize("seed", range(6))
def test_running_means_of_zero_are_no_averages_that_stall(policy: str, seed: int) -> None:
    """Between two batch norms a convolution without a bias has a mean of 0; round-off moves it."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 1, bias=False), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1, bias=False), nn.BatchNorm2d(4)
    )
    x = torch.randn(4, 1, 8, 8)
    assert diagnose(model, lambda: model(x).square().mean() + model(x).abs().mean(), policy).is_healthy


def test_an_average_that_a_format_stalls_is_told_but_under_autocast() -> None:
    class Averaged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.register_buffer("average", torch.full((4,), 8.0))

        def forward(self, x: Any) -> Any:
            x = self.layer(x)
            self.average.mul_(0.9999).add_(x.detach().mean(0), alpha=1e-4)
            return x

    torch.manual_seed(0)
    model, x = Averaged(), torch.randn(8, 4)
    kinds = {policy: [each.kind for each in diagnose(model, lambda: model(x).mean(), policy).findings]
             for policy in ("bf16", "autocast_cuda")}  # fmt: skip
    assert kinds == {"bf16": ["state"], "autocast_cuda": []}
