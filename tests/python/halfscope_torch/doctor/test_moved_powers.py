"""Powers of two moved between layers as a remedy: generated overflows that they mend, and steps that get none."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn
from torch.nn import functional

from halfscope.torch import Diagnosis, diagnose, rescale
from halfscope.torch.doctor.transformations import moved_powers

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
KIND = "moved powers of two"
TYPED = "type rescale(model, [None], call=lambda model, _: loss()).apply(model): it multiplies "


class Norm(nn.Module):
    """A norm as libraries have it: squares in FP32."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(width)), 1e-6

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(x.dtype)


class Gated(nn.Module):
    def __init__(self, width: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.norm = norm(width)
        self.up, self.gate, self.down = nn.Linear(width, 24), nn.Linear(width, 24), nn.Linear(24, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(x)
        return x + self.down(self.up(y) * functional.silu(self.gate(y)))

    def pair(self) -> tuple[nn.Module, nn.Module]:
        return self.up, self.down


class Plain(nn.Module):
    """Two layers with a ReLU between them."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(width, 24, bias), nn.Linear(24, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(self.one(x).relu())

    def pair(self) -> tuple[nn.Module, nn.Module]:
        return self.one, self.two


class Images(nn.Module):
    """Two convolutions; rows of numbers become images of one line."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = nn.Conv1d(1, 6, 3, padding=1), nn.Conv1d(6, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.two(functional.leaky_relu(self.one(x[:, None])))[:, 0]

    def pair(self) -> tuple[nn.Module, nn.Module]:
        return self.one, self.two


def faulty(seed: int) -> tuple[nn.Module, Tensor, Tensor]:
    """A model with an overflow between two layers, inputs and labels."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    width = draw.choice([8, 12, 16])
    kinds: list[Callable[[], nn.Module]] = [
        lambda: Gated(width, draw.choice([nn.LayerNorm, Norm])),
        lambda: Plain(width, draw.random() < 0.5),
        lambda: Images(width),
    ]
    blocks = [draw.choice(kinds)() for _ in range(draw.randint(1, 2))]
    planted = draw.choice(blocks)
    first, second = planted.pair()
    with torch.no_grad():
        for tensor in first.parameters():
            tensor *= 2.0 ** draw.choice([18, 19])
        second.weight *= 2.0**-10
    model = nn.Sequential(nn.Linear(6, width), *blocks, nn.LayerNorm(width), nn.Linear(width, 4))
    return model, torch.randn(16, 6), torch.randint(4, (16,))


def closure_of(model: nn.Module, x: Tensor, labels: Tensor, trains: bool) -> Callable[[], Tensor]:
    def loss() -> Tensor:
        with torch.set_grad_enabled(trains):
            return functional.cross_entropy(model(x).float(), labels)

    return loss


def in_half(model: nn.Module, x: Tensor) -> Tensor:
    return copy.deepcopy(model).half()(x.half()).float()


def check(seed: int) -> bool:
    """Whether powers were moved; the remedy as it is typed gives FP32's bits, and real FP16 that is finite and near."""
    model, x, labels = faulty(seed)
    loss = closure_of(model, x, labels, trains=seed % 2 == 1)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        plain = model(x)
        if in_half(model, x).isfinite().all():
            return False
    found = diagnose(model, loss)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    kinds = [finding.kind for finding in found.findings]
    if KIND not in kinds:
        return False
    finding = found.findings[kinds.index(KIND)]
    assert finding.change.startswith(TYPED) and finding.sure.startswith("tried: ")
    assert ("their gradients change by the inverse powers" in finding.change) == (seed % 2 == 1)
    rescale(model, [None], call=lambda model, _: loss()).apply(model)
    with torch.no_grad():
        assert torch.equal(model(x), plain)
        half = in_half(model, x)
    assert (half - plain).norm() < 0.02 * plain.norm()
    assert KIND not in [each.kind for each in diagnose(model, loss).findings]
    return True


def test_overflows_between_two_layers() -> None:
    assert sum(map(check, range(10))) >= 9


@pytest.mark.slow
def test_a_hundred_overflows_between_two_layers() -> None:
    assert sum(map(check, range(10, 110))) >= 85


def kinds_of(found: Diagnosis) -> list[str]:
    return [finding.kind for finding in found.findings]


def swiglu(size: float = 2.0**18) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), Gated(12, nn.LayerNorm), nn.Linear(12, 4))
    with torch.no_grad():
        for tensor in model[1].up.parameters():
            tensor *= size
        model[1].down.weight /= size / 256
    return model, torch.randn(16, 6)


def test_a_step_that_updates_the_weights_gets_none() -> None:
    """The update of a weight that is 2^k times as large is another one."""
    model, x = swiglu()
    assert KIND in kinds_of(diagnose(model, lambda: model(x).square().mean()))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    model[0].weight.grad = torch.ones_like(model[0].weight)
    found = diagnose(model, step, optimizer=optimizer)
    assert found.findings and KIND not in kinds_of(found)
    assert torch.equal(model[0].weight.grad, torch.ones_like(model[0].weight))


def test_an_overflow_that_nothing_moves_past_gets_none() -> None:
    model, x = swiglu(1.0)
    with torch.no_grad():
        model[1].gate.weight *= 2.0**20
    found = diagnose(model, lambda: model(x).square().mean())
    assert found.findings and KIND not in kinds_of(found)


@pytest.mark.parametrize("wrong", ["1.down.weight", "1.up.bias", "0.weight"])
def test_powers_that_change_the_outcome_are_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = swiglu()
    right = moved_powers._rescaled

    def one_more(about):  # type: ignore[no-untyped-def]
        found = right(about)
        assert found is not None
        state = {**found.state_dict, wrong: found.state_dict[wrong] / 2}
        return replace(found, moved={**found.moved, wrong: found.moved.get(wrong, 0) - 1}, state_dict=state)

    monkeypatch.setattr(moved_powers, "_rescaled", one_more)
    found = diagnose(model, lambda: model(x).square().mean())
    assert found.findings and KIND not in kinds_of(found)


def test_weights_that_change_fp32_alone_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By less than the format's round-off, so that its own outcome does not tell."""
    model, x = swiglu()
    right = moved_powers._rescaled

    def a_little_off(about):  # type: ignore[no-untyped-def]
        found = right(about)
        assert found is not None
        return replace(found, moved={**found.moved, "1.up.weight": found.moved["1.up.weight"] + math.log2(1.0001)})

    monkeypatch.setattr(moved_powers, "_rescaled", a_little_off)
    found = diagnose(model, lambda: model(x).square().mean())
    assert found.findings and KIND not in kinds_of(found)


def test_it_comes_before_calls_in_fp32() -> None:
    """A region in FP32 is what heals without it."""
    model, x = swiglu()
    (first,) = diagnose(model, lambda: model(x).square().mean()).findings
    assert first.kind == KIND and "1.up.weight by 2^-" in first.change and "1.down.weight by 2^" in first.change
    (other,) = diagnose(model, lambda: model(x).square().mean(), "fp8_e4m3", quick=True).findings
    assert other.kind != KIND
