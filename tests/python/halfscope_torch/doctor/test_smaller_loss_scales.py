"""A loss scale at which gradients overflow, beside PyTorch's own FP16 halving it, as a gradient scaler does."""

from __future__ import annotations

import copy
import math
import random
from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from halfscope.torch import diagnose

pytestmark = pytest.mark.torch
SEEDS = range(24)


class Net(nn.Module):
    """Layers and a loss of random sizes, that FP16 holds at some scale."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        rng = random.Random(seed)
        torch.manual_seed(seed)
        widths = [rng.choice([4, 8, 16]) for _ in range(rng.randint(2, 4))]
        parts = [part for a, b in pairwise(widths) for part in (nn.Linear(a, b), rng.choice([nn.Tanh, nn.ReLU])())]
        self.layers, self.factor = nn.Sequential(*parts), 2.0 ** rng.randint(-3, 7)
        self.x = torch.randn(rng.choice([8, 32]), widths[0])

    def forward(self) -> torch.Tensor:
        x = self.x.to(next(self.parameters()).dtype)
        return ((self.layers(x) + 0.5).square() * self.factor).mean()


def skipped_steps(net: Net, scale: float) -> int | None:
    """Halvings of the scale until PyTorch's gradients in FP16 are finite; None where they are not at 1."""
    half = copy.deepcopy(net).half()
    times = 0
    while scale >= 1:
        half.zero_grad()
        (half() * scale).backward()
        if all(bool(weight.grad.isfinite().all()) for weight in half.parameters()):
            return times
        scale, times = scale / 2, times + 1
    return None


@pytest.mark.parametrize("seed", SEEDS)
def test_the_scale_is_the_one_that_a_scaler_falls_to(seed: int) -> None:
    net = Net(seed)
    scale = random.Random(~seed).choice([1.0, 3.0]) * 2.0 ** random.Random(seed).randint(12, 24)
    times = skipped_steps(net, scale)
    report = diagnose(net, net, scale=scale)
    kinds = [each.kind for each in report.findings]
    if not times:
        assert (kinds == []) is (times == 0), report
        return
    assert kinds == ["loss scale"], report
    words = report.findings[0].change
    assert words.endswith(f"after {times} skipped step{'s' if times > 1 else ''}"), (times, words)
    typed = eval(words.partition("init_scale=")[2].partition(")")[0])
    assert math.isclose(typed, scale / 2.0**times, rel_tol=1e-5)


def test_what_overflows_in_fp16_alone_is_no_matter_of_the_scale() -> None:
    """A result beyond FP16 is so at every scale."""
    net = Net(0)
    net.factor = 2.0**20
    report = diagnose(net, net, scale=2.0**16)
    assert "loss scale" not in {each.kind for each in report.findings}
    assert report.findings
