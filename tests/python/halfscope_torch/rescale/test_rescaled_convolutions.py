"""`rescale` of generated convolutional networks: finite in real FP16, FP32 outputs bit for bit the same."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn
from torch.nn import functional

from halfscope.torch import emulate, rescale

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

WIDTH, INSIDE = 8, 12
Tensor = torch.Tensor
CONVOLUTIONS = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
TRANSPOSED = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}
BATCH_NORMS = {1: nn.BatchNorm1d, 2: nn.BatchNorm2d, 3: nn.BatchNorm3d}
POOLS = {1: (nn.MaxPool1d, nn.AvgPool1d), 2: (nn.MaxPool2d, nn.AvgPool2d), 3: (nn.MaxPool3d, nn.MaxPool3d)}


class Branch(nn.Module):
    """Two convolutions with what a power of two goes through between them, beside a residual or not."""

    def __init__(self, axes: int, draw: random.Random) -> None:
        super().__init__()
        bias, groups = draw.random() < 0.5, draw.choice([1, 1, 2, 4])
        convolution = CONVOLUTIONS[axes]
        self.first = convolution(WIDTH, INSIDE, 3, padding=1, dilation=1, groups=groups, bias=bias)
        if draw.random() < 0.25:
            self.first = TRANSPOSED[axes](WIDTH, INSIDE, 3, padding=1, groups=groups, bias=bias)
        self.norm = draw.choice([nn.Identity, lambda: BATCH_NORMS[axes](INSIDE), lambda: nn.GroupNorm(3, INSIDE)])()
        self.between: Callable[[Tensor], Tensor] = draw.choice(
            [torch.relu, functional.leaky_relu, nn.Identity(), POOLS[axes][draw.randint(0, 1)](3, 1, 1)]
        )
        self.second = convolution(INSIDE, WIDTH, draw.choice([1, 3]), padding="same", bias=draw.random() < 0.5)
        self.is_residual = draw.random() < 0.5

    def forward(self, x: Tensor) -> Tensor:
        y = self.second(self.between(self.norm(self.first(x))))
        return x + y if self.is_residual else y

    def plant(self, power: int) -> None:
        """Between the convolutions, where no norm makes up for it."""
        last = self.first if isinstance(self.norm, nn.Identity) else self.norm
        with torch.no_grad():
            last.weight *= 2.0**power
            if last.bias is not None:
                last.bias *= 2.0**power
            self.second.weight *= 2.0**-power


class Network(nn.Module):
    def __init__(self, axes: int, draw: random.Random) -> None:
        super().__init__()
        self.stem = CONVOLUTIONS[axes](3, WIDTH, 3, stride=2)
        self.branches = nn.ModuleList(Branch(axes, draw) for _ in range(draw.randint(1, 2)))
        self.head = nn.Linear(WIDTH, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x).relu()
        for branch in self.branches:
            x = branch(x)
        return self.head(x.flatten(2).mean(-1))


def generated(seed: int) -> tuple[Network, Tensor, bool]:
    """In evaluation mode, with running averages of a batch; whether a power was planted that overflows."""
    draw, axes = random.Random(seed), 1 + seed % 3
    torch.manual_seed(seed)
    network, x = Network(axes, draw), torch.randn(4, 3, *[9, 9, 7][:axes])
    network(x)
    network.eval()
    power = draw.choice([0, 19, 21])
    network.branches[-1].plant(power)
    return network, x, power > 0


def in_half(network: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        return copy.deepcopy(network).half()(x.half()).float()


def check(seed: int) -> bool:
    """Whether FP16 overflows before the powers are moved."""
    network, x, is_planted = generated(seed)
    with torch.no_grad():
        plain = network(x)
    is_finite = bool(in_half(network, x).isfinite().all())
    result = rescale(network, [x])
    moved = copy.deepcopy(network)
    result.apply(moved)
    with torch.no_grad():
        assert torch.equal(moved(x).view(torch.int32), plain.view(torch.int32))
    with emulate(moved, "fp16") as emulated, torch.no_grad():
        half = moved(x)
    assert emulated.first_overflow is None
    assert half.isfinite().all() and (half - plain).norm() < 0.02 * plain.norm(), seed
    real = in_half(moved, x)
    assert (real - plain).norm() < 0.02 * plain.norm(), seed
    assert is_finite or (is_planted and result.moved)
    return not is_finite


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_powers_between_convolutions_are_moved_back(first: int) -> None:
    assert sum(map(check, range(first, first + 10))) >= 3


@pytest.mark.slow
def test_three_hundred_convolutional_networks() -> None:
    assert sum(map(check, range(40, 340))) > 100
