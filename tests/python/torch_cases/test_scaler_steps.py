"""Sentences on a loss scaler: skipped steps that are no fault, and uses that are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import GradScaler, emulate, watch
from halfscope.torch.scaler_steps import ScalerSteps

pytestmark = pytest.mark.torch


class Times(nn.Module):
    """The gradient of its weight is its input."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x: float) -> torch.Tensor:
        return self.w * x


def _emulated(model: nn.Module, **trainers: Any) -> AbstractContextManager:
    return emulate(model, "fp16_mixed", compare_steps=(1, 10), **trainers)


def _watched(model: nn.Module, **trainers: Any) -> AbstractContextManager:
    return watch(model, every=1, **trainers)


DOORS = pytest.mark.parametrize("door", [_emulated, _watched], ids=["emulate", "watch"])


class Loop:
    """A training with a scaler whose steps are made one by one."""

    def __init__(self, factor: Callable[[int], float], **options: float) -> None:
        self.model, self.factor = Times(), factor
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1.0)
        self.scaler = GradScaler("dynamic", **options)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda k: 1 / (k + 1))
        self.scheduled = self.clipped = self.narrow = False

    def run(self, door: Callable[..., Any], steps: int) -> Any:
        with door(self.model, optimizer=self.optimizer, scaler=self.scaler) as seen:
            for step in range(1, steps + 1):
                self._step(step)
        return seen

    def _step(self, step: int) -> None:
        self.optimizer.zero_grad()
        output = self.model(self.factor(step))
        self.scaler.scale((output.half().float() if self.narrow else output).sum()).backward()
        if self.narrow and max(p.grad.abs().max() for p in self.model.parameters()) > 65504:
            self.model.w.grad.fill_(float("inf"))
        if self.clipped:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.scheduled:
            self.schedule.step()


def narrow_loop(factor: Callable[[int], float], **options: float) -> Loop:
    loop = Loop(factor, **options)
    loop.narrow = True
    return loop


@DOORS
def test_the_start_up_of_a_scale_is_no_fault(door: Callable) -> None:
    loop = narrow_loop(lambda _: 3.0)
    seen = loop.run(door, 4)
    assert loop.scaler.get_scale() == 16384
    assert (
        "The scaler skipped the first 2 steps, S from 65536 down to 32768: the start-up of a dynamic scale, no fault."
        in seen.verdict()
    )
    assert "schedule" not in seen.verdict()


def test_an_overflow_at_a_scale_that_came_down_is_not_the_first_overflow() -> None:
    """A harmless one in step 1, and one of the forward pass in step 16."""
    loop = narrow_loop(lambda step: 3.0 if step < 16 else 1e5)
    found = loop.run(_emulated, 16).first_overflow
    assert (found.step, found.role, found.overflow) == (16, "activation", 4)
    assert narrow_loop(lambda _: 3.0).run(_emulated, 4).first_overflow is None


def test_a_gradient_that_no_scale_keeps_finite_is_the_first_overflow() -> None:
    loop = narrow_loop(lambda _: 60000.0, initial_scale=8.0)
    seen = loop.run(_emulated, 2)
    assert seen.first_overflow is not None and seen.first_overflow.step == 1


def test_the_step_that_is_compared_is_one_that_was_taken() -> None:
    loop = narrow_loop(lambda _: 3.0)
    comparison = loop.run(_emulated, 4).compare_to("fp32", steps=[1])
    assert comparison.steps == [3]
    assert all(row.relative_error < 1 for row in comparison.ranked())


@DOORS
def test_a_schedule_that_runs_ahead_is_named(door: Callable) -> None:
    """Public case 7."""
    loop = narrow_loop(lambda _: 3.0)
    loop.scheduled = True
    verdict = loop.run(door, 4).verdict()
    assert "The learning rate moved on in 2 skipped steps: the schedule is 2 ahead of the weights." in verdict
    assert "if scaler.get_scale() >= before: scheduler.step()" in verdict


@DOORS
def test_a_run_that_skips_every_step_is_incurable(door: Callable) -> None:
    verdict = narrow_loop(lambda _: float("inf"), initial_scale=64.0).run(door, 7).verdict()
    assert "The scaler skipped all 7 steps, S from 64 down to 1: no loss scale helps." in verdict
    assert "print(halfscope.torch.diagnose(model, loss))" in verdict


@DOORS
def test_clipping_before_unscaling_is_named(door: Callable) -> None:
    loop = Loop(lambda step: float(step), initial_scale=1024.0, growth_interval=2)
    loop.clipped = True
    verdict = loop.run(door, 6).verdict()
    assert "The norm of all gradients is 1 / S in every step: they were clipped before they were unscaled." in verdict
    assert "scaler.unscale_(optimizer)" in verdict
    right = Loop(lambda step: float(step), initial_scale=1024.0, growth_interval=2)
    assert "clipped before" not in right.run(door, 6).verdict()


@DOORS
def test_gradients_that_are_all_zero_are_named(door: Callable) -> None:
    """Public case 28."""
    verdict = Loop(lambda _: 0.0, initial_scale=1024.0).run(door, 3).verdict()
    assert (
        "All gradients were 0 in 3 of 3 steps: nothing overflows, and nothing limits the growth of the scale" in verdict
    )


def test_unscaling_twice_says_what_the_first_call_did() -> None:
    """Public case 15."""
    p = nn.Parameter(torch.zeros(1))
    optimizer, scaler = torch.optim.SGD([p], lr=1.0), GradScaler("dynamic", initial_scale=1024.0)
    scaler.scale((p * 0.5).sum() / 4).backward()
    scaler.unscale_(optimizer)
    scaler.scale((p * 0.5).sum() / 4).backward()
    with pytest.raises(RuntimeError, match="behind the last micro-batch.*were divided by 1024 already"):
        scaler.unscale_(optimizer)


def told(skips: Iterator[bool] | list[bool], scale: float = 65536.0) -> ScalerSteps:
    steps = ScalerSteps()
    for skipped in skips:
        steps.end(not skipped, scale, 0.1)
        scale = scale / 2 if skipped else scale
    return steps


def test_a_later_skip_is_expected_and_a_long_row_is_not() -> None:
    assert told([False] * 9 + [True] + [False] * 9).words() == [
        "Later it skipped 1 step (step 10), at S = 65536: expected where the scale has just grown."
    ]
    assert told([False] * 9 + [True] * 4).is_incurable is False
    assert told([False] * 9 + [True] * 5).is_incurable is True
    assert told([False] * 3).words() == []
