"""Averages of weights that a step keeps outside of its model: what FP16 loses of their changes is told, at the line."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

from halfscope.torch import diagnose

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Update = Callable[[Any, Any, float], Any]  # takes an average, a weight and its share


def by_product(average: Any, weight: Any, share: float) -> None:
    average.mul_(1 - share).add_(weight, alpha=share)


def by_lerp(average: Any, weight: Any, share: float) -> None:
    average.lerp_(weight, share)


def by_copy(average: Any, weight: Any, share: float) -> None:
    average.copy_(average + share * (weight - average))


def by_out(average: Any, weight: Any, share: float) -> None:
    torch.add(average, share * (weight - average), out=average)


WAYS = (by_product, by_lerp, by_copy, by_out)


def drawn(seed: int) -> tuple[nn.Module, nn.Module, Any]:
    """A network, the average of its weights, some steps behind, and a batch."""
    torch.manual_seed(seed)
    width = int(torch.randint(8, 40, ()))
    net = nn.Sequential(nn.Linear(12, width), nn.Tanh(), nn.Linear(width, 6))
    average = copy.deepcopy(net).requires_grad_(False)
    with torch.no_grad():
        for weight in average.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.02)
    return net, average, torch.randn(16, 12)


def lost_by_pytorch(net: nn.Module, average: nn.Module, way: Update, share: float) -> float:
    """Error of the largest change in PyTorch's own FP16, of all tensors the worst."""
    errors = []
    for weight, mean in zip(net.parameters(), average.parameters()):
        exact, half = mean.detach().clone(), mean.detach().half()
        way(exact, weight.detach(), share)
        start = half.clone()
        way(half, weight.detach().half(), share)
        change = exact - mean
        errors.append(float((half.float() - start.float() - change).norm() / change.norm()))
    return max(errors)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("share", [0.5, 1e-4])
@pytest.mark.parametrize("seed", range(3))
def test_an_average_that_stands_still_is_told(way: Update, share: float, seed: int) -> None:
    net, average, x = drawn(seed)

    def loss() -> Any:
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), net.parameters()):
                way(mean, weight, share)
        return functional.mse_loss(net(x), average(x) + 1)

    before = [mean.clone() for mean in average.parameters()]
    lost = lost_by_pytorch(net, average, way, share)
    report = diagnose(net, loss, "fp16")
    assert all(torch.equal(mean, start) for mean, start in zip(average.parameters(), before))
    if share == 0.5:
        assert lost < 0.1 and not report.findings, str(report)
        return
    assert lost > 0.5
    (finding,) = report.findings
    first = way.__code__.co_firstlineno
    assert finding.change.startswith("keep in FP32 what this step writes to outside of its model"), str(report)
    assert finding.place.line == first + 1 and "the change of tensor 1 from outside" in finding.why, str(report)


@pytest.mark.parametrize("way", WAYS[:2])
@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("share", [0.5, 1e-4])
def test_an_average_of_16_bits_is_told_and_left_as_it_was(way: Update, is_half: bool, share: float) -> None:
    """Beside a model of 16 bits, and beside one of FP32."""
    net, average, x = drawn(0)
    average.half()
    if is_half:
        net.half()

    def loss() -> Any:
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), net.parameters()):
                way(mean, weight.to(mean.dtype), share)
        outputs = net(x.half() if is_half else x), average(x.half())
        return functional.mse_loss(outputs[0].float(), outputs[1].float() + 1)

    before = [mean.clone() for mean in average.parameters()]
    report = diagnose(net, loss, "fp16")
    assert all(torch.equal(mean, start) for mean, start in zip(average.parameters(), before))
    told = [finding.change.startswith("keep in FP32 what this step writes to") for finding in report.findings]
    assert told == ([] if share == 0.5 else [True]), str(report)


@pytest.mark.parametrize("share", [0.5, 1e-4])
def test_an_average_in_fp32_beside_a_model_of_16_bits_is_healthy(share: float) -> None:
    net, average, x = drawn(0)
    net.half()

    def loss() -> Any:
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), net.parameters()):
                by_product(mean, weight.float(), share)
        return functional.mse_loss(net(x.half()).float(), average(x) + 1)

    report = diagnose(net, loss, "fp16")
    assert not report.findings, str(report)
