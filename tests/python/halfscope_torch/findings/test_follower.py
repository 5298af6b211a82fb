"""Infinities that an operation hides: told where PyTorch's own step in 16 bits is off, and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from halfscope.torch import diagnose, emulate

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Function = Callable[[Any], Any]

# Operations that are beyond FP16's largest number for some of their operands, and what comes behind them.
BIRTHS: dict[str, Function] = {
    "300 x": lambda x: 300 * x,
    "-300 x": lambda x: -300 * x,
    "x / 0.003": lambda x: x / 0.003,
    "x x": lambda x: x * x,
    "x + x + x": lambda x: x + x + x,
    "exp": lambda x: torch.exp(x / 2000),
}
HIDERS: dict[str, Function] = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "clamp": lambda h: h.clamp(-2, 1),
    "clamp_": lambda h: h.clamp_(-2, 1),
    "hardtanh_": functional.hardtanh_,
    "reciprocal": torch.reciprocal,
    "1 / (1 + h)": lambda h: 1 / (1 + h),
    "minimum": lambda h: torch.minimum(h, torch.full_like(h, 2)),
    "where": lambda h: torch.where(h.abs() > 100, 1.0, h),
    "softmax": lambda h: torch.softmax(h, -1),
    "softmax of -": lambda h: torch.softmax(-h.abs(), -1),
    "nothing": lambda h: h,
}
USES: dict[str, Callable[[Any, Any], Any]] = {  # the infinite h, and its operand x
    "a comparison": lambda h, x: torch.where(h > 100, 1.0, x),
    "a comparison of its size": lambda h, x: x * (h.abs() < 100),
    "a comparison that it changes": lambda h, x: torch.where(h > 1e9, x, 2 * x),
    "nothing": lambda h, x: x,
    "a sum": lambda h, x: x + 1e-5 * h,
}


class Chain(nn.Module):
    """A layer that passes its input on, the operation and the one behind it."""

    def __init__(self, birth: str, hider: str) -> None:
        super().__init__()
        self.scale, self._birth, self._hider = nn.Parameter(torch.ones(4)), BIRTHS[birth], HIDERS[hider]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._hider(self._birth(self.scale * x))


class Used(Chain):
    """An operation whose result is used beside its operand."""

    def __init__(self, birth: str, use: str) -> None:
        super().__init__(birth, "nothing")
        self._use = USES[use]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.scale * x
        return self._use(self._birth(x), x)


X = torch.tensor([[25000.0, 2.0, -3.0, 1.0], [-2.0, 24000.0, 1.0, 2.0]])


def step(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Scaled, so that no gradient is flushed."""
    return model(x).float().sum() * 64


def is_harmless(birth: str, behind: str, kind_of_model: type[Chain] = Chain) -> bool:
    """Whether PyTorch's own step in FP16 is as in FP32, but for roundings."""
    found = []
    for kind in (torch.float32, torch.float16):
        model = kind_of_model(birth, behind).to(kind)
        loss = step(model, X.to(kind))
        loss.backward()
        found.append(torch.cat([loss.detach()[None], model.scale.grad.float()]))
    exact, half = found
    return bool(half.isfinite().all()) and float((half - exact).norm()) <= 0.01 * float(exact.norm())


def overflows(birth: str) -> bool:
    return not bool(BIRTHS[birth](X.half()).isfinite().all())


def is_allowed(birth: str, hider: str) -> bool:
    """The gradient of an exponential needs its result, which nothing may write to."""
    return birth != "exp" or not hider.endswith("_")


CASES = [case for case in product(BIRTHS, HIDERS) if is_allowed(*case)]


@pytest.mark.parametrize("birth", BIRTHS)
def test_every_operation_overflows(birth: str) -> None:
    assert overflows(birth)


def test_both_answers_are_there() -> None:
    answers = [is_harmless(*case) for case in CASES]
    assert min(answers.count(True), answers.count(False)) > 20


@pytest.mark.parametrize(("birth", "hider"), CASES)
def test_a_diagnosis_and_an_emulation_tell_of_an_infinity_that_harms_and_of_no_other(birth: str, hider: str) -> None:
    model = Chain(birth, hider)
    harmless = is_harmless(birth, hider)
    found = diagnose(model, lambda: step(model, X), "fp16_mixed")
    assert (found.fault is None) == harmless, str(found)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16", optimizer=optimizer, every=1) as emulated:
        for _ in range(3):  # compared with FP32 is the first alone
            step(model, X).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert (emulated.first_overflow is None) == harmless, emulated.verdict
    if not harmless:  # one line of the source
        assert emulated.verdict.split(":")[:2] == str(found).split(":")[:2]


@pytest.mark.parametrize(("hider", "name"), [("relu", "relu"), ("clamp_", "clamp"), ("softmax of -", "softmax")])
def test_a_report_names_what_hid_a_harmless_infinity(hider: str, name: str) -> None:
    model = Chain("-300 x", hider)
    with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as emulated:
        step(model, X).backward()
    fate = "a softmax made them 0, as FP32's" if name == "softmax" else f"{name} behind it is as in FP32"
    assert f", and {fate}: no fault. Nothing else overflowed." in " ".join(emulated.verdict.split())


def test_a_mask_that_two_softmaxes_drop_is_no_fault() -> None:
    """The mask overflows when it is cast to the scores' format, in a copy that nobody sees again."""
    layer = nn.Linear(4, 4)
    mask = torch.full((4, 4), -1e9).triu(1)
    with emulate(layer, "fp16", optimizer=torch.optim.SGD(layer.parameters(), lr=0.0)) as emulated:
        scores = layer(torch.eye(4)) + mask
        (torch.softmax(scores, -1) + torch.softmax(scores, 0).flip(0)).square().sum().backward()
    assert emulated.first_overflow is None, emulated.verdict


class OverflowsTwice(Chain):
    """The second time behind what hides the first."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self._hider(self._birth(self.scale * x))
        return h * 1e5


@pytest.mark.parametrize("hider", ["clamp_", "hardtanh_", "clamp", "sigmoid"])
@pytest.mark.parametrize("birth", ["300 x", "-300 x", "x x"])
def test_numbers_that_were_written_over_carry_nothing(birth: str, hider: str) -> None:
    model = OverflowsTwice(birth, hider)
    line = f"test_follower.py:{OverflowsTwice.forward.__code__.co_firstlineno + 2}"
    assert str(diagnose(model, lambda: step(model, X), "fp16_mixed")).startswith(line)
    with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as emulated:
        step(model, X).backward()
    assert emulated.verdict.startswith(line)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("birth", BIRTHS)
def test_no_infinity_is_told_that_is_only_compared(birth: str, use: str) -> None:
    model = Used(birth, use)
    found = diagnose(model, lambda: step(model, X), "fp16_mixed")
    harmless = is_harmless(birth, use, Used)
    assert (found.fault is None) == harmless, str(found)
    with emulate(model, "fp16", optimizer=(optimizer := torch.optim.SGD(model.parameters(), lr=0.0))) as emulated:
        for _ in range(3):  # compared with FP32 is the first alone
            step(model, X).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert (emulated.first_overflow is None) == harmless, emulated.verdict


class InfiniteLoss(nn.Module):
    """The loss is a sum of the model, which overflows; its gradient is FP32's."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.scale * x).abs().sum() * 3


def test_an_infinite_loss_is_told_whose_gradients_are_those_of_fp32() -> None:
    model = InfiniteLoss()
    with emulate(model, "fp16", optimizer=(optimizer := torch.optim.SGD(model.parameters(), lr=0.0))) as emulated:
        model(X).backward()
        optimizer.step()
    assert emulated.first_overflow is not None
    line = f"test_follower.py:{InfiniteLoss.forward.__code__.co_firstlineno + 1}"
    assert emulated.verdict.startswith(line)


class Recomputed(Chain):
    """Chain whose forward pass the backward pass computes once more."""

    is_reentrant = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return checkpoint(super().forward, x, use_reentrant=self.is_reentrant)


class RecomputedByNode(Recomputed):
    is_reentrant = True


def texts(kind_of_model: type[Chain], birth: str, hider: str) -> list[str]:
    """A diagnosis without the number of its operations, and the finding of an emulation."""
    model, x = kind_of_model(birth, hider), X.clone().requires_grad_()
    told = str(diagnose(model, lambda: step(model, x), "fp16_mixed"))
    with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as emulated:
        step(model, x).backward()
    return [re.sub(r"Looked at: \d+|\s+", " ", told), emulated.verdict.partition("1 step under")[0]]


@pytest.mark.parametrize("kind_of_model", [Recomputed, RecomputedByNode])
@pytest.mark.parametrize("hider", ["nothing", "softmax", "sigmoid", "minimum"])
@pytest.mark.parametrize("birth", BIRTHS)
def test_a_recomputed_infinity_is_told_once(birth: str, hider: str, kind_of_model: type[Chain]) -> None:
    assert texts(kind_of_model, birth, hider) == texts(Chain, birth, hider)


class TwoFaults(nn.Module):
    """Two lines overflow; their sum, in either order of operands, is NaN."""

    def __init__(self, is_swapped: bool) -> None:
        super().__init__()
        self.scale, self._is_swapped = nn.Parameter(torch.ones(4)), is_swapped

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.scale * x
        first = 300 * x
        second = -400 * x
        return second + first if self._is_swapped else first + second


@pytest.mark.parametrize("is_swapped", [False, True])
def test_of_two_faults_the_older_one_is_passed_on(is_swapped: bool) -> None:
    model = TwoFaults(is_swapped)
    with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as emulated:
        step(model, X).backward()
    lines = [f"test_follower.py:{TwoFaults.forward.__code__.co_firstlineno + place}" for place in (2, 4)]
    assert emulated.verdict.startswith(lines[0])
    assert f"It is NaN from {lines[1]}, add" in " ".join(emulated.verdict.split())
    assert str(diagnose(model, lambda: step(model, X), "fp16_mixed")).startswith(lines[0])


class FanIn(nn.Module):
    """Two lines use a tensor; the gradients of both are finite, and their sum overflows."""

    def __init__(self, factors: tuple[float, float]) -> None:
        super().__init__()
        self.layer, self._factors = nn.Linear(4, 4), factors

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.layer(x) * 1.5
        first = h * self._factors[0]
        second = h * self._factors[1]
        return (first + second) * 1e-3


@pytest.mark.parametrize("factors", [(3e4, 4e4), (4e4, 3e4), (-5e4, -2e4), (-2e4, -5e4)])
def test_a_sum_of_gradients_is_blamed_on_the_largest(factors: tuple[float, float]) -> None:
    model, x = FanIn(factors), torch.linspace(-1e-3, 1e-3, 12).reshape(3, 4)
    larger = 2 if abs(factors[0]) > abs(factors[1]) else 3
    line = f"test_follower.py:{FanIn.forward.__code__.co_firstlineno + larger}"
    assert str(diagnose(model, lambda: model(x).sum() * 1e3, "fp16_mixed")).startswith(line)
    with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as emulated:
        (model(x).sum() * 1e3).backward()
    assert emulated.verdict.startswith(line)


class FarConstant(nn.Module):
    """Between a constant that FP16 flushes and the division by it numbers are only moved, many times."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = (self.scale * x).abs() + 1e-8
        for _ in range(8):
            h = h.flip(-1)
        return 1 / h


def test_moves_are_no_steps_on_the_way_back_to_a_constant() -> None:
    model, x = FarConstant(), torch.tensor([[0.0, 1.0, 2.0, 3.0]])
    told = " ".join(str(diagnose(model, lambda: model(x).sum(), "fp16_mixed")).split())
    assert "constant 1e-08 is 0 in FP16 (in add)" in told
