"""Sentences on a loss scaler: skipped steps that are no fault, and uses that are one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import GradScaler, emulate, watch
from halfscope.torch.steps.scaler_steps import ScalerSteps

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
        in seen.verdict
    )
    assert "schedule" not in seen.verdict


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
    verdict = loop.run(door, 4).verdict
    assert "The learning rate moved on in 2 skipped steps: the schedule is 2 ahead of the weights." in verdict
    assert "if scaler.get_scale() >= before: scheduler.step()" in verdict


@DOORS
def test_a_run_that_skips_every_step_is_incurable(door: Callable) -> None:
    verdict = narrow_loop(lambda _: float("inf"), initial_scale=64.0).run(door, 7).verdict
    assert "The scaler skipped all 7 steps, S from 64 down to 1: no loss scale helps." in verdict
    assert "print(halfscope.torch.diagnose(model, loss))" in verdict


@DOORS
def test_clipping_before_unscaling_is_named(door: Callable) -> None:
    loop = Loop(lambda step: float(step), initial_scale=1024.0, growth_interval=2)
    loop.clipped = True
    verdict = loop.run(door, 6).verdict
    assert "The norm of all gradients is 1 / S in every step: they were clipped before they were unscaled." in verdict
    assert "scaler.unscale_(optimizer)" in verdict
    right = Loop(lambda step: float(step), initial_scale=1024.0, growth_interval=2)
    assert "clipped before" not in right.run(door, 6).verdict


@DOORS
def test_gradients_that_are_all_zero_are_named(door: Callable) -> None:
    """Public case 28."""
    verdict = Loop(lambda _: 0.0, initial_scale=1024.0).run(door, 3).verdict
    assert (
        "All gradients were 0 in 3 of 3 steps: nothing overflows, and nothing limits the growth of the scale" in verdict
    )
    assert "Look for a loss that is cut off from the weights (detach, no_grad, a mask, dead units)" in verdict
    assert 'GradScaler("apex_amp") is torch.amp\'s rule with a ceiling of 2^24' in verdict


def test_a_scale_that_nothing_limits_is_named() -> None:
    """Public case 28: a healthy run whose gradients are tiny."""
    verdict = Loop(lambda _: 1e-30, initial_scale=2.0**39, growth_interval=1).run(_watched, 3).verdict
    assert "The scale has grown to 2^41: gradients are so small that nothing limits it" in verdict
    assert 'GradScaler("apex_amp")' in verdict
    assert "has grown" not in Loop(lambda _: 1.0, growth_interval=1).run(_watched, 3).verdict


def test_a_scale_that_overflows_gradients_is_no_mask() -> None:
    """Public case 28: the loss's own gradient is the scale, which is no constant of the model."""
    verdict = Loop(lambda _: 1e-30, initial_scale=2.0**39).run(_emulated, 1).verdict
    assert "1e4" not in verdict and "finfo" not in verdict


class WithoutLimit:
    """A scaler of one's own, which doubles on."""

    def __init__(self) -> None:
        self.value = 2.0**127

    def get_scale(self) -> float:
        return self.value

    def update(self) -> None:
        self.value = float(torch.tensor(self.value) * 2)

    def state_dict(self) -> dict[str, float]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.value = state["value"]


@DOORS
def test_a_scale_that_became_infinite_is_named(door: Callable) -> None:
    """Public case 28: inf / 2 is inf."""
    model, scaler = Times(), WithoutLimit()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with door(model, optimizer=optimizer, scaler=scaler) as seen:
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(1e-30).sum() * scaler.get_scale()
            loss.backward()
            if bool(loss.isfinite()):
                optimizer.step()
            scaler.update()
    assert "The scale is infinite from step 2 on, and stays so: inf / 2 is inf" in seen.verdict
    assert 'GradScaler("apex_amp")' in seen.verdict


class Pair(nn.Module):
    """Two parameters that two optimizers train."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))


def pytorchs_scaler(scale: float) -> Any:
    return torch.amp.GradScaler("cpu", init_scale=scale)


SCALERS = pytest.mark.parametrize(
    "scaler_of",
    [lambda scale: GradScaler("dynamic", initial_scale=scale), pytorchs_scaler],
    ids=["halfscope", "torch"],
)


@SCALERS
@DOORS
def test_an_optimizer_without_gradients_is_named(door: Callable, scaler_of: Callable) -> None:
    """Public case 52: one of two takes part every second iteration only."""
    model = Pair()
    optimizers = [torch.optim.SGD([model.a], lr=0.1), torch.optim.Adam([model.b], lr=0.1)]
    scaler = scaler_of(8.0)
    with door(model, optimizer=optimizers, scaler=scaler) as seen:
        scaler.scale((model.a * 2).sum()).backward()
        scaler.step(optimizers[0])
        with pytest.raises(AssertionError):
            scaler.step(optimizers[1])
        before = seen.verdict
        scaler.update()
    sentence = (
        "The scaler refused to step optimizer 2 of 2 (Adam) in 1 step: none of its parameters (b) had a gradient. "
        "Call scaler.step only for optimizers that took part in the iteration"
    )
    assert sentence in before and sentence in seen.verdict
    assert (model.a.item(), model.b.item(), scaler.get_scale()) == (pytest.approx(0.8), 1.0, 8.0)


@SCALERS
@DOORS
def test_the_optimizer_whose_overflow_lowered_the_scale_is_named(door: Callable, scaler_of: Callable) -> None:
    """Public case 52: two optimizers and one scaler."""
    model = Pair()
    optimizers = [torch.optim.SGD([model.a], lr=0.1), torch.optim.Adam([model.b], lr=0.1)]
    scaler = scaler_of(8.0)
    with door(model, optimizer=optimizers, scaler=scaler) as seen:
        for step in range(3):
            model.zero_grad()
            factor = float("inf") if step == 1 else 1.0
            scaler.scale((model.a * 2 + model.b * factor).sum()).backward()
            for optimizer in optimizers:
                scaler.step(optimizer)
            scaler.update()
    assert scaler.get_scale() == 4.0
    assert (
        "Optimizer 2 of 2 (Adam) had infinite or NaN gradients in 1 step, in 1 of them while another optimizer "
        "stepped, and lowered the scale for all: b. A GradScaler of its own keeps its overflows from the others."
    ) in seen.verdict
    assert "Optimizer 1 of 2" not in seen.verdict


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
