"""A check leaves a training as it was, bit for bit, costs few runs, and hides nothing behind an error of its own."""

from __future__ import annotations

import copy
import functools
import random
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import check

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Training:
    """Everything that a step may change."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        torch.manual_seed(seed)
        width = rng.choice([4, 8])
        self.model = nn.Sequential(
            nn.Linear(4, width), nn.BatchNorm1d(width), nn.Dropout(0.5), nn.Linear(width, 1), nn.Tanh()
        )
        self.teacher = nn.Sequential(nn.Linear(4, 1), nn.BatchNorm1d(1))
        kind = rng.choice([torch.optim.Adam, torch.optim.SGD, torch.optim.RMSprop])
        self.optimizer = kind(self.model.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=rng.choice([1.0, 1024.0, 2.0**40]), growth_interval=1)
        self.generator = torch.Generator().manual_seed(seed)
        self.numpy_generator, self.own_random = numpy.random.default_rng(seed), random.Random(seed)
        self.factor = rng.choice([1.0, 3e4, 1e-6])
        self.drawn: set[float] = set()  # one number of each call

    def step(self) -> torch.Tensor:
        noise = torch.randn(8, 4, generator=self.generator) + torch.randn(8, 4) + random.random() + numpy.random.rand()
        self.drawn.add(self.own_random.random())
        noise = noise + float(self.numpy_generator.random()) + max(self.drawn)
        self.optimizer.zero_grad()
        loss = ((self.model(noise) - self.teacher(noise)) * self.factor).square().mean()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        return loss

    def bits(self) -> dict[str, Any]:
        states = {
            "model": self.model.state_dict(), "teacher": self.teacher.state_dict(),
            "optimizer": self.optimizer.state_dict(), "schedule": self.schedule.state_dict(),
            "scaler": self.scaler.state_dict(), "gradients": [p.grad for p in self.model.parameters()],
            "modes": [module.training for module in self.model.modules()],
        }  # fmt: skip
        numbers = {
            "torch": torch.get_rng_state(), "own": self.generator.get_state(), "numpy": numpy.random.get_state(),
            "own numpy": self.numpy_generator.bit_generator.state, "python": random.getstate(),
            "own python": self.own_random.getstate(),
        }  # fmt: skip
        return copy.deepcopy({**states, **numbers})


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, numpy.ndarray):
        return numpy.array_equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_nothing_is_changed_bit_for_bit(seed: int) -> None:
    training = Training(seed)
    for _ in range(seed % 3):
        training.step()
    before, gradients = training.bits(), [weight.grad for weight in training.model.parameters()]
    training.drawn.clear()
    hooks = [len(module._forward_hooks) for module in training.model.modules()]
    report = check(training.model, training.step, training.optimizer, seconds=5)
    after = training.bits()
    assert [name for name in before if not same(before[name], after[name])] == []
    assert all(weight.grad is gradient for weight, gradient in zip(training.model.parameters(), gradients))
    assert hooks == [len(module._forward_hooks) for module in training.model.modules()]
    assert len(training.drawn) == 1 or "its state is ill before it" in report.about
    assert "compute the loss of one batch" not in str(report)
    training.step()
    assert not same(before, training.bits())  # a step does change it


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_an_optimizer_that_the_step_reaches_is_found() -> None:
    training = Training(3)
    before = training.bits()
    report = check(training.model, training.step, seconds=5)
    assert same(before, training.bits()) and "updates:" in report.about


def test_what_functions_inside_of_functions_reach_is_kept() -> None:
    generators = [torch.Generator().manual_seed(seed) for seed in range(4)]
    model = nn.Linear(2, 2)
    stream = {"noise": [generators[0]]}

    def noise(generator: torch.Generator = generators[1]) -> torch.Tensor:
        return torch.randn(2, 2, generator=generator) + torch.randn(2, 2, generator=stream["noise"][0])

    def batch(own: torch.Generator, *, other: torch.Generator = generators[2]) -> torch.Tensor:
        return noise() + torch.randn(2, 2, generator=own) + torch.randn(2, 2, generator=other)

    before = [generator.get_state() for generator in generators]
    check(model, functools.partial(lambda own: model(batch(own)).square().mean(), generators[3]), format="autocast")
    assert all(map(torch.equal, before, [generator.get_state() for generator in generators]))
    model(batch(generators[3]))
    assert not any(map(torch.equal, before, [generator.get_state() for generator in generators]))


class Nowhere:
    """A proxy without an object behind it."""

    @property
    def __class__(self) -> type:
        raise RuntimeError("no object")


def test_objects_that_tell_nothing_are_passed_by() -> None:
    model, nowhere, generator = nn.Linear(2, 2), Nowhere(), torch.Generator().manual_seed(1)
    before = generator.get_state()

    def loss() -> torch.Tensor:
        assert nowhere is not None
        return model(torch.randn(2, 2, generator=generator)).square().mean()

    assert len(check(model, loss, format="autocast")) == 0
    assert torch.equal(before, generator.get_state())


def test_a_healthy_step_costs_few_runs_beside_the_doctor() -> None:
    torch.manual_seed(0)
    model, x, calls = nn.Linear(4, 4), torch.randn(8, 4), []

    def loss() -> torch.Tensor:
        calls.append(1)
        return model(x).square().mean()

    report = check(model, loss, format="autocast")
    doctor = int(report.about.partition(" runs")[0].rpartition(" ")[2])
    assert len(report) == 0 and 2 <= len(calls) - doctor <= 4


def sick() -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    model, x = nn.Linear(4, 4), 1000 * torch.ones(2, 4)
    return model, lambda: (model(x) * model(x)).mean().log()


PARTS = {
    "ill_state": "state before the step", "run_in_fp32": "step in FP32", "count_updates": "updates",
    "scale_words": "loss scale", "constants": "constants",
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_an_error_in_a_part_hides_nothing_that_is_known(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, loss = sick()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    whole = str(check(model, step)).splitlines()[0]

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("planted")

    monkeypatch.setitem(check.__globals__, part, fails)
    report = check(model, step)
    assert str(report).splitlines()[0] == whole, report
    assert f"{PARTS[part]}: RuntimeError: planted" in report.about


def test_an_error_of_the_doctor_is_said_and_the_rest_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise RuntimeError("planted")

    model, _ = sick()
    monkeypatch.setitem(check.__globals__, "examine", fails)
    with torch.no_grad():
        model.bias.fill_(0.5)
    report = check(model, lambda: model(torch.ones(1, 4)).sum() * 1e-9, format="autocast")
    assert report.findings[0].kind == "loss scale" and "step: RuntimeError: planted" in report.about
    quiet = check(model, lambda: model(torch.ones(1, 4)).sum(), format="autocast")
    assert str(quiet).startswith("Not known: the step in the format could not be looked at")


def test_a_step_that_fails_is_named_with_its_line_beside_what_is_known() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.layer(x)
            return h / 1e9

    model = Deep()
    report = check(model, lambda: model(torch.ones(2, 3)).sum())
    first, *rest = report.findings
    assert first.kind == "error" and first.code == "h = self.layer(x)" and "RuntimeError" in first.why
    assert ["1e+09" in each.change for each in rest] == [True]
    assert "not before what stands above is changed" in report.about


def test_two_batches_are_told_before_anything_else() -> None:
    model, batches = nn.Linear(4, 1), iter(range(1, 100))
    report = check(model, lambda: (model(torch.ones(2, 4)) * next(batches)).sum() + 1)
    assert str(report).startswith("compute the loss of one batch, the same in each call") and len(report) == 1
