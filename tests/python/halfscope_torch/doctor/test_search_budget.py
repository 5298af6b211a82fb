"""Seconds of a search whose runs are long: none is begun that would end later, and the report names what is left."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn

from halfscope.torch import check, check_blocks, diagnose
from halfscope.torch.doctor.find_remedy import find_remedy, program_of
from halfscope.torch.doctor.progress import Progress
from halfscope.torch.doctor.report import Diagnosis
from halfscope.torch.trainers.followed_run import Settings

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Clock:
    """Seconds that pass with each forward pass of a model alone."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Slow(nn.Module):
    """A network that takes `seconds` of a clock. factor: of a square, which overflows in FP16 from 1e3 on."""

    def __init__(self, clock: Clock, seconds: float, factor: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.clock, self.seconds, self.factor = nn.Linear(8, 8), clock, seconds, factor
        self.inputs = torch.randn(4, 8)

    def loss(self) -> torch.Tensor:
        self.clock.now += self.seconds
        h = self.layer(self.inputs) * self.factor + self.factor
        return ((h * h) / self.factor**2).mean()


def searched(seconds: float, of_a_run: float, factor: float) -> tuple[float, Diagnosis]:
    """Seconds that passed, and the report."""
    clock = Clock()
    model = Slow(clock, of_a_run, factor)
    report = find_remedy(program_of(model, model.loss, "fp16", [], 1.0), Progress(seconds, clock))
    return clock.now, report


@pytest.mark.parametrize("factor", [1.0, 1e3])
@pytest.mark.parametrize("of_a_run", [0.5, 3.0, 7.0, 21.0, 40.0, 100.0])
@pytest.mark.parametrize("seconds", [10.0, 60.0, 150.0])
def test_no_run_is_begun_that_would_end_too_late(seconds: float, of_a_run: float, factor: float) -> None:
    spent, report = searched(seconds, of_a_run, factor)
    assert spent <= max(seconds, 2 * of_a_run) and report.runs == spent / of_a_run
    assert spent + 2 * of_a_run > seconds or not report.untried  # no two runs were left


def test_what_was_not_tried_is_told() -> None:
    _, report = searched(60.0, 21.0, 1e3)
    words = " ".join(str(report).split())
    assert "the search ended after 42 s" in words and "Not tried, after 42 of 60 s, with 21 s a run: " in words
    for part in ("noise that may explain an error", "the calls that FP32 heals", "remedies", "within torch.autocast"):
        assert part in report.untried
    assert "overflows" in words  # the cause is known from the format's own run


def test_a_search_with_time_for_all_leaves_nothing_out() -> None:
    _, report = searched(60.0, 0.1, 1e3)
    assert report.untried == "" and report.findings and all(advice.kind for advice in report.findings), report


@pytest.mark.parametrize("runs", [18, 20, 24, 27])
def test_fp32_is_tried_before_cheaper_changes_where_time_is_short(runs: int) -> None:
    _, report = searched(60.0, 60.0 / runs, 1e3)
    assert [advice.kind for advice in report.findings] == ["FP32"], report
    assert "cheaper remedies than FP32" in report.untried and report.runs <= runs


@pytest.mark.parametrize("runs", [31, 40, 50, 200])
def test_the_cheapest_change_is_told_where_time_is_enough(runs: int) -> None:
    _, report = searched(60.0, 60.0 / runs, 1e3)
    _, unhurried = searched(60.0, 0.01, 1e3)
    assert [str(advice) for advice in report.findings] == [str(advice) for advice in unhurried.findings]
    assert report.findings[0].kind == "constant" and report.untried == ""


def test_runs_that_end_with_an_error_tell_nothing_of_the_others() -> None:
    clock = Clock()
    progress = Progress(10.0, clock)
    with pytest.raises(ValueError), progress.run(0):
        clock.now += 8.5
        raise ValueError
    assert progress.longest == 0 and progress.has_time()
    with progress.run(1):
        clock.now += 0.75
    assert progress.longest == 0.75 and progress.has_time(1) and not progress.has_time(2) and progress.is_cut
    assert progress.part(6.0).has_time(8) and not progress.part(6.0).has_time(9)


@pytest.mark.parametrize("of_a_run", [1.0, 5.0, 20.0])
@pytest.mark.parametrize("factor", [1.0, 1e3])
def test_the_looks_of_a_check_leave_half_of_the_seconds_to_the_search(
    factor: float, of_a_run: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    model = Slow(clock, of_a_run, factor)
    monkeypatch.setitem(check.__globals__, "Progress", partial(Progress, clock=clock))
    report = check(model, model.loss, seconds=60.0)
    before = 3 * of_a_run  # the step as it is, twice, and in FP32
    assert clock.now <= before + max(60.0 - before, 30.0, 2 * of_a_run)
    assert ("Not tried, after" in str(report)) == (of_a_run == 20.0 or (of_a_run, factor) == (5.0, 1e3)), report


@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan")])
def test_seconds_that_nobody_can_mean_are_refused_by_every_door(seconds: float) -> None:
    model = torch.nn.Linear(2, 1)
    doors: dict[str, Callable[[], object]] = {
        "diagnose": lambda: diagnose(model, lambda: model(torch.ones(1, 2)).sum(), seconds=seconds),
        "check": lambda: check(model, lambda: model(torch.ones(1, 2)).sum(), seconds=seconds),
        "check_blocks": lambda: check_blocks("nowhere", "nowhere", seconds=seconds),
        "trainers": lambda: Settings(100, "fp16", None, seconds),
    }
    for name, door in doors.items():
        with pytest.raises(ValueError, match=rf"^{name}: seconds={seconds}; give 0 or more$"):
            door()
