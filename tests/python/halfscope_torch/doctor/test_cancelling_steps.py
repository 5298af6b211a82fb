"""Steps in which large numbers cancel, in FP32 too: none is called healthy whose loss FP16 spoils."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from halfscope.torch import check, diagnose

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


def expanded_distances(p: torch.Tensor) -> torch.Tensor:
    y = p.detach().flip(0)
    distances = (p**2).sum(-1)[:, None] + (y**2).sum(-1)[None] - 2 * (p @ y.t())
    return distances.mean() if len(p) < 16 else distances.min(1).values.mean()


def raw_variance(p: torch.Tensor) -> torch.Tensor:
    return ((p * p).mean(0) - p.mean(0) ** 2).sum()


def raw_covariance(p: torch.Tensor) -> torch.Tensor:
    centre = p.mean(0)
    return ((p.t() @ p) / len(p) - centre[:, None] * centre[None]).square().sum().sqrt()


LOSSES: list[Callable[[torch.Tensor], torch.Tensor]] = [expanded_distances, raw_variance, raw_covariance]


class Cloud(nn.Module):
    """Points far from the origin, some spread around them; the farther they are, the more cancels."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = random.Random(seed)
        torch.manual_seed(seed)
        self.loss, self.offset = LOSSES[seed % len(LOSSES)], 2.0 ** rng.uniform(-1, 7)
        self.x = torch.randn(rng.choice([8, 32, 64]), 3)
        self.spread, self.moves = 2.0 ** rng.uniform(-7, 0), nn.Linear(3, 3)

    def forward(self) -> torch.Tensor:
        return self.loss(self.offset + self.spread * (self.x + 0.1 * self.moves(self.x)))


def loss_in(seed: int, dtype: torch.dtype) -> float:
    net = Cloud(seed).to(dtype)
    net.x = net.x.to(dtype)
    with torch.no_grad():
        return float(net())


@pytest.mark.parametrize("seed", range(36))
def test_a_spoiled_loss_is_never_healthy(seed: int) -> None:
    """By PyTorch's own FP16, beside FP64."""
    net = Cloud(seed)
    half, exact = loss_in(seed, torch.float16), loss_in(seed, torch.float64)
    report = diagnose(net, net, "fp16")
    if not abs(half - exact) <= 0.5 * abs(exact):
        assert not str(report).startswith("Healthy"), f"{half} for {exact}\n{report}"
    if report.unjudged:
        assert str(report).startswith("No verdict on the loss")
        checked = check(net, net, format="fp16")
        assert "No verdict on the loss" in str(checked)
        assert report.judges_gradients or "loss scale: the gradients are nothing but round-off" in str(checked)


def test_a_true_zero_has_no_verdict_and_the_gradients_beside_it_do() -> None:
    """The first step of a policy that is its own reference."""
    torch.manual_seed(0)
    model, x = nn.Linear(8, 5), torch.randn(64, 8)
    advantages = torch.randn(64)
    advantages -= advantages.mean()

    def loss() -> torch.Tensor:
        chosen = torch.log_softmax(model(x), -1)[:, 0]
        return -(torch.exp(chosen - chosen.detach()) * advantages).mean()

    text = str(diagnose(model, loss))
    assert text.startswith("No verdict on the loss:") and "2 gradients are FP32's but for round-off" in " ".join(
        text.split()
    )
