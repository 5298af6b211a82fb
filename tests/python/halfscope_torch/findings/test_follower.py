"""Infinities that an operation hides: told where PyTorch's own step in 16 bits is off, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

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
    found = diagnose(model, lambda: step(model, X))
    assert (found.fault is None) == harmless, str(found)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16", optimizer=optimizer, every=1) as emulated:
        for _ in range(3):  # compared with FP32 is the first alone
            step(model, X).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert (emulated.first_overflow is None) == harmless, emulated.verdict()
    if not harmless:  # one line of the source
        assert emulated.verdict().split(":")[:2] == str(found).split(":")[:2]


@pytest.mark.parametrize(("hider", "name"), [("relu", "relu"), ("clamp_", "clamp"), ("softmax of -", "softmax")])
def test_a_report_names_what_hid_a_harmless_infinity(hider: str, name: str) -> None:
    model = Chain("-300 x", hider)
    with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as emulated:
        step(model, X).backward()
    fate = "a softmax made them 0, as FP32's" if name == "softmax" else f"{name} behind it is as in FP32"
    assert f", and {fate}: no fault. Nothing else overflowed." in " ".join(emulated.verdict().split())


def test_a_mask_that_two_softmaxes_drop_is_no_fault() -> None:
    """The mask overflows when it is cast to the scores' format, in a copy that nobody sees again."""
    layer = nn.Linear(4, 4)
    mask = torch.full((4, 4), -1e9).triu(1)
    with emulate(layer, "fp16", optimizer=torch.optim.SGD(layer.parameters(), lr=0.0)) as emulated:
        scores = layer(torch.eye(4)) + mask
        (torch.softmax(scores, -1) + torch.softmax(scores, 0).flip(0)).square().sum().backward()
    assert emulated.first_overflow is None, emulated.verdict()


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
    assert str(diagnose(model, lambda: step(model, X))).startswith(line)
    with emulate(model, "fp16", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as emulated:
        step(model, X).backward()
    assert emulated.verdict().startswith(line)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("birth", BIRTHS)
def test_a_diagnosis_tells_no_infinity_that_is_only_compared(birth: str, use: str) -> None:
    model = Used(birth, use)
    found = diagnose(model, lambda: step(model, X))
    assert (found.fault is None) == is_harmless(birth, use, Used), str(found)
