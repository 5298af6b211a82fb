"""`rescale` of generated networks and of planted ones: finite in real FP16, FP32 outputs bit for bit the same."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn
from torch.nn import functional

from halfscope.torch import Rescaled, emulate, rescale

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

WIDTH, HIDDEN = 8, 16


class Norm(nn.Module):
    """A norm as libraries have it: squares in FP32."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(width)), 1e-6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(x.dtype)


class Mlp(nn.Module):
    """A block of two layers, gated or not, beside a residual."""

    def __init__(self, activation: Callable, is_gated: bool, norm: nn.Module, bias: bool = False) -> None:
        super().__init__()
        self.norm, self.activation = norm, activation
        self.up, self.down = nn.Linear(WIDTH, HIDDEN, bias), nn.Linear(HIDDEN, WIDTH, bias)
        self.gate = nn.Linear(WIDTH, HIDDEN, bias) if is_gated else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        hidden = self.activation(self.up(y)) if self.gate is None else self.up(y) * self.activation(self.gate(y))
        return x + self.down(hidden)


class Attention(nn.Module):
    def __init__(self, is_fused: bool) -> None:
        super().__init__()
        self.norm, self.is_fused = Norm(), is_fused
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)[None]
        q, k, v = self.q(y), self.k(y), self.v(y)
        if self.is_fused:
            return x + self.o(functional.scaled_dot_product_attention(q, k, v))[0]
        mask = torch.full((len(x), len(x)), torch.finfo(q.dtype).min).triu(1).to(q.dtype)
        scores = q @ k.transpose(-1, -2) / WIDTH**0.5 + mask
        return x + self.o(torch.softmax(scores, -1) @ v)[0]


class Network(nn.Module):
    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.embed, self.blocks = nn.Linear(4, WIDTH, bias=False), nn.ModuleList(blocks)
        self.norm, self.head = Norm(), nn.Linear(WIDTH, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


BLOCKS: list[Callable[[], nn.Module]] = [
    lambda: Mlp(torch.relu, False, Norm()),
    lambda: Mlp(torch.relu, False, nn.LayerNorm(WIDTH), bias=True),
    lambda: Mlp(functional.silu, True, Norm()),
    lambda: Mlp(functional.gelu, False, Norm(), bias=True),
    lambda: Mlp(functional.gelu, True, nn.LayerNorm(WIDTH)),
    lambda: Attention(is_fused=True),
    lambda: Attention(is_fused=False),
]


def free_pairs(network: Network) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Weights between which a power of two can move without a change of the output."""
    pairs = []
    for block in network.blocks:
        if isinstance(block, Attention):
            pairs += [(block.q.weight, block.k.weight), (block.v.weight, block.o.weight)]
        elif block.gate is not None or block.activation is torch.relu:
            pairs += [(block.up.weight, block.down.weight)] if block.up.bias is None else []
            pairs += [(block.norm.weight, block.up.weight)] if block.gate is None and block.up.bias is None else []
    return pairs


def in_half(network: nn.Module, x: torch.Tensor) -> torch.Tensor:
    half = copy.deepcopy(network).half()
    for module in half.modules():
        if isinstance(module, nn.LayerNorm):
            module.float()
            module.forward = lambda x, own=module: functional.layer_norm(
                x.float(), own.normalized_shape, own.weight, own.bias, own.eps).to(x.dtype)  # fmt: skip
    with torch.no_grad():
        return half(x.half()).float()


def checked(network: nn.Module, x: torch.Tensor) -> Rescaled:
    """The result, after its proofs: FP32 bits, and a real FP16 pass that is finite and near."""
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with torch.no_grad():
        plain = network(x)
    result = rescale(network, [x])
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())  # untouched
    moved = copy.deepcopy(network)
    result.apply(moved)
    assert all(torch.equal(value, moved.state_dict()[name]) for name, value in result.state_dict.items())
    with torch.no_grad():
        assert torch.equal(moved(x).view(torch.int32), plain.view(torch.int32))
    half = in_half(moved, x)
    assert half.isfinite().all() and (half - plain).norm() < 0.01 * plain.norm()
    return result


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_powers_that_were_moved_apart_are_moved_back(seed: int) -> None:
    """Twenty generated networks each: FP16 overflows in most, and fits all of them again."""
    overflows = 0
    for number in range(seed, seed + 20):
        draw = random.Random(number)
        torch.manual_seed(number)
        network = Network([draw.choice(BLOCKS)() for _ in range(draw.randint(1, 3))])
        for first, second in free_pairs(network):
            power = draw.choice([0, 0, -9, 14, 17])
            with torch.no_grad():
                first *= 2.0**power
                second *= 2.0**-power
        x = torch.randn(6, 4, generator=torch.Generator().manual_seed(number))
        is_finite = bool(in_half(network, x).isfinite().all())
        overflows += not is_finite
        result = checked(network, x)
        assert is_finite or result.moved
    assert overflows >= 3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["hidden", "residual", "gated"])
def test_planted_sizes_fit(kind: str, seed: int) -> None:
    torch.manual_seed(seed)
    network = Network(
        [Mlp(functional.silu if kind == "gated" else torch.relu, kind == "gated", Norm()) for _ in range(3)]
    )
    block = network.blocks[1]
    sizes = {"hidden": (65536, 1, 1 / 256), "residual": (4096, 1, 4096), "gated": (2**14, 64, 1 / 16)}[kind]
    with torch.no_grad():
        for layer, size in zip((block.up, block.gate, block.down), sizes):
            if layer is not None:
                layer.weight *= size
    x = 4 * torch.randn(64, 4)
    assert not in_half(network, x).isfinite().all()
    result = checked(network, x)
    if kind == "residual":
        assert set(result.attributes) == {f"{norm}.variance_epsilon" for norm in (
            "blocks.0.norm", "blocks.1.norm", "blocks.2.norm", "norm")}  # fmt: skip
    result.apply(network)
    with emulate(network, "fp16") as emulated, torch.no_grad():
        assert network(x).isfinite().all()
    assert emulated.first_overflow is None


NORMS = [lambda: nn.RMSNorm(WIDTH, eps=1e-6), lambda: nn.RMSNorm(WIDTH), lambda: nn.LayerNorm(WIDTH),
         lambda: nn.GroupNorm(2, WIDTH), lambda: nn.BatchNorm1d(WIDTH)]  # fmt: skip


@pytest.mark.parametrize("norm", NORMS)
def test_a_norm_takes_its_epsilon_along(norm: Callable[[], nn.Module]) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, WIDTH), norm(), nn.Linear(WIDTH, 3))
    with torch.no_grad():
        network[0].weight *= 2.0**20
    x = torch.randn(16, 4)
    network(x)  # running averages of a batch norm
    network.eval()
    result = rescale(network, [x])
    with torch.no_grad():
        plain = network(x)
        result.apply(network)
        assert torch.equal(network(x), plain) and network[0](x).abs().max() < 32768
    assert list(result.attributes) == ["1.eps"] or isinstance(network[1], nn.BatchNorm1d)


def test_tied_weights_move_together() -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
    second.weight = first.weight
    network = nn.Sequential(first, nn.ReLU(), second, nn.LayerNorm(4))
    with torch.no_grad():
        first.weight *= 2.0**12
    result = rescale(network, [torch.randn(8, 4)])
    assert result.moved["0.weight"] == result.moved["2.weight"] < 0
    assert result.state_dict["0.weight"] is result.state_dict["2.weight"]


def test_a_network_in_range_stays() -> None:
    result = rescale(nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2)), [torch.randn(8, 4)])
    assert result.moved == {} and str(result.report).startswith("Nothing to move: no tensor overflows in FP16.")


def test_a_coincidence_with_an_attribute_is_undone() -> None:
    """A constant that is not eps, and an attribute that has its number by chance."""

    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.rate = nn.Linear(4, 4), nn.Linear(4, 2), 1000.0
            self.norm = Norm(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.norm(torch.relu(self.first(x)) + 1000.0))

    torch.manual_seed(0)
    network = Shifted()
    with torch.no_grad():
        network.first.weight *= 2.0**20
    with pytest.raises(ValueError, match=r"'first' .* is held by"):
        rescale(network, [torch.randn(8, 4)])
    assert network.rate == 1000.0


def test_a_loss_without_axes() -> None:
    torch.manual_seed(0)
    network, x = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), torch.randn(8, 4)
    with torch.no_grad():
        network[0].weight *= 2.0**20
        network[2].weight *= 2.0**-20
    result = rescale(network, [x], call=lambda network, x: functional.mse_loss(network(x), x[:, :2]))
    assert result.moved["0.weight"] < 0 < result.moved["2.weight"]
