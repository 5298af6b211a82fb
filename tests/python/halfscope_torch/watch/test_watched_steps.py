"""Ends of steps: optimizers' own hooks, several optimizers, losses that are logged late."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope.torch import watch
from planted import ELEMENTS, Planted, Scaler, records, train


def losses(folder: Path) -> list:
    return [line["loss"] for line in records(folder, "metrics.jsonl")]


@pytest.mark.parametrize("order", ["before the step", "after it", "after zero_grad"])
def test_a_loss_belongs_to_its_step_wherever_it_is_logged(order: str, tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    given = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a tensor with a gradient that becomes a number warns
        with watch(model, 2, optimizer=optimizer, out=tmp_path / "mine") as watched:
            for _ in range(4):
                loss = model(torch.randn(5, 3)).square().mean()
                loss.backward()
                given.append(loss.item())
                if order == "before the step":
                    watched.log(loss)
                optimizer.step()
                if order == "after zero_grad":
                    optimizer.zero_grad()
                if order != "before the step":
                    model.eval()
                    with torch.no_grad():
                        model(torch.randn(5, 3))  # an evaluation does not begin a step
                    watched.log(loss)
    assert losses(tmp_path / "mine") == given


def test_every_third_loss_is_logged_before_its_step(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, out=tmp_path / "mine") as watched:
        for step in range(1, 7):
            loss = model(torch.ones(ELEMENTS)).sum()
            if step % 3 == 0:
                watched.log(step)
            loss.backward()
            optimizer.step()
    assert losses(tmp_path / "mine") == [None, None, 3.0, None, None, 6.0]


def test_several_optimizers_make_a_step(tmp_path: Path) -> None:
    model = Planted()
    optimizers = [torch.optim.SGD([layer.weight], lr=2.0**-12) for layer in (model.first, model.second)]
    with watch(model, 1, optimizer=optimizers, out=tmp_path / "two") as watched:
        for _ in range(3):
            model(torch.ones(ELEMENTS)).sum().backward()
            for optimizer in optimizers:
                optimizer.step()
    assert watched.steps == 3
    for line in records(tmp_path / "two", "metrics.jsonl"):
        assert {update["tensor"]: update["nonzero"] for update in line["updates"]} == {
            "first.weight": ELEMENTS, "second.weight": ELEMENTS
        }  # fmt: skip
    assert "in no optimizer" not in watched.verdict


class Derived(torch.optim.SGD):
    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data += 4.0


def test_a_step_that_calls_another_is_one_step() -> None:
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)  # PyTorch then hooks the base class's step too
    model = Planted()
    optimizer = Derived(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        train(model, optimizer, 1)
    assert watched.steps == 1
    # Weights of 1 move by 2^-20 inside of the inner step, and by 4 after it.
    ratios = watched.histograms("update_ratio")["second.weight"]
    assert (ratios.nonzero, ratios.what_if(1.0).flushed) == (ELEMENTS, 0) and ratios.max_abs == 4


def test_a_step_that_fails_does_not_hide_the_next_ones() -> None:
    class Failing(torch.optim.SGD):
        fails = True

        def step(self, closure=None):
            if self.fails:
                raise MemoryError
            return super().step(closure)

    model = Planted()
    optimizer = Failing(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        with pytest.raises(MemoryError):
            train(model, optimizer, 1)
        optimizer.fails = False
        train(model, optimizer, 2)
    assert watched.steps == 2


def test_schedulers_do_not_see_the_watch() -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    step = vars(optimizer).get("step")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # "optimizer.step() has been overridden"
        with watch(model, 1, optimizer=optimizer) as watched:
            assert vars(optimizer).get("step") is step
            for _ in range(3):
                train(model, optimizer, 1)
                schedule.step()
    assert watched.steps == 3
    train(model, optimizer, 1)
    assert watched.steps == 3


class Accumulating(torch.optim.Optimizer):
    """As accelerate wraps an optimizer: a step inside of accumulation is none."""

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer, self.calls = optimizer, 0

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def step(self, closure=None) -> None:
        self.calls += 1
        if self.calls % 2 == 0:
            self.optimizer.step()


def test_wrapped_optimizers_step_when_what_they_wrap_does() -> None:
    model = Planted()
    inner = torch.optim.SGD(model.parameters(), lr=1.0)
    wrapped = Accumulating(inner)
    with watch(model, 1, optimizer=wrapped) as watched:
        for _ in range(8):
            model(torch.ones(ELEMENTS)).sum().backward()
            wrapped.step()
    assert watched.steps == 4


def test_the_first_step_of_a_closure_has_updates(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=2)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(5, 3)).square().mean()
        loss.backward()
        return loss

    with watch(model, 1, optimizer=optimizer, out=tmp_path / "lbfgs"):
        optimizer.step(closure)
    (line,) = records(tmp_path / "lbfgs", "metrics.jsonl")
    assert sum(update["nonzero"] for update in line["updates"]) == 4


def test_a_trace_of_every_tenth_step_is_replayed_by_step_numbers() -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, 10, optimizer=optimizer, scaler=(scaler := Scaler(1024.0))) as watched:
        train(model, optimizer, 200, scaler)
    (run,) = halfscope.replay(watched.trace(), "dynamic", growth_interval=20, initial_scale=1024.0).runs
    assert len(run.scale_log2) == 21 and run.scale_log2[0] == 10
    assert run.scale_log2[-1] == 10 + 199 // 20  # at step 200; every tenth step alone would make it grow once


def test_gaps_are_filled_with_the_latest_finite_gradients() -> None:
    def step(number: int, largest: float | None) -> dict:
        return {"step": number, "scale": 1.0, "gradients": {"finite": largest is not None, "max_abs": largest}}

    trace = [step(1, 1.0), step(4, None), step(8, 1.0)]
    (run,) = halfscope.replay(trace, "dynamic", growth_interval=2, initial_scale=1024.0).runs
    # Steps 2 and 3 are like 1, and 5 to 7 too: the overflow of step 4 is not repeated.
    assert run.overflow_steps == (4,) and run.skipped == 1
    assert run.scale_log2 == (10, 11, 11)
    with pytest.raises(ValueError, match="step 5000000 follows step 1; give steps of the optimizer"):
        halfscope.replay([step(1, 1.0), step(5_000_000, 1.0)], "dynamic")
