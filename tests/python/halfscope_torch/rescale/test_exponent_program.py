"""Exponents of tiny networks beside all that there are: the fewest binades, found by trying."""

from __future__ import annotations

import itertools
import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
np = pytest.importorskip("numpy")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn

from halfscope.torch import rescale

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

POWERS = range(-6, 7)


class Tiny(nn.Module):
    """Three matrices; `kind` says how they are joined. Keeps what it computes, and what must stay as it is."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(torch.randn(3, 3)) for _ in range(3))
        self.kind = kind
        self.seen: list[torch.Tensor] = []
        self.fixed: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = []
        keep = lambda tensor: self.seen.append(tensor) or tensor  # noqa: E731
        first = keep(x @ self.a)
        if self.kind == "chain":
            return keep(keep(torch.relu(first) @ self.b) @ self.c)
        if self.kind == "gated":
            self.fixed = keep(x @ self.b)
            return keep(keep(first * keep(torch.sigmoid(self.fixed))) @ self.c)
        if self.kind == "residual":
            return keep(keep(first + keep(first @ self.b)) @ self.c)
        self.fixed = keep(first @ self.b)
        return keep(keep(torch.tanh(self.fixed)) @ self.c)


def fits(network: Tiny, weights: list[torch.Tensor]) -> bool:
    activations = all(2 ** (1 + np.floor(np.log2(each.abs().max().item()))) <= 32768 for each in network.seen)
    return activations and all(weight.abs().max() <= 65504 for weight in weights)


def halves(before: torch.Tensor, after: torch.Tensor) -> bool:
    """Whether no more numbers came to lie below the normal ones than may."""
    below = int((after.abs() < 2.0**-14).sum())
    return (
        bool(torch.equal(before, after)) or below <= 0.01 * before.numel() or bool((after.abs() >= before.abs()).all())
    )


def best(network: Tiny, x: torch.Tensor) -> int | None:
    """The least sum of magnitudes over all powers; None where none fit."""
    own = [network.a, network.b, network.c]
    originals = [weight.detach().clone() for weight in own]
    with torch.no_grad():
        plain, fixed, found = network(x), network.fixed, None
        for powers in sorted(itertools.product(POWERS, repeat=3), key=lambda each: sum(map(abs, each))):
            for weight, original, power in zip(own, originals, powers):
                weight.copy_(original * 2.0**power)
            is_same = torch.equal(network(x), plain) and (fixed is None or torch.equal(fixed, network.fixed))
            if is_same and fits(network, own) and all(map(halves, originals, own)):
                found = sum(map(abs, powers))
                break
        for weight, original in zip(own, originals):
            weight.copy_(original)
    return found


@pytest.mark.parametrize("kind", ["chain", "gated", "residual", "fixed"])
def test_the_fewest_binades_are_moved(kind: str) -> None:
    solved = 0
    for number in range(5):
        draw = random.Random(number)
        torch.manual_seed(number)
        network = Tiny(kind)
        with torch.no_grad():
            for weight in network.parameters():
                weight *= 2.0 ** draw.choice([0, 3, 8, 12, -5])
        x = torch.randn(5, 3)
        least = best(network, x)
        if least is None:
            try:
                moved = rescale(network, [x]).moved
            except ValueError as error:
                assert "no powers of two fit: " in str(error)
            else:
                assert not all(power in POWERS for power in moved.values()), number
            continue
        solved += 1
        assert sum(map(abs, rescale(network, [x]).moved.values())) == least, number
    assert solved >= 2
