"""Notes of a run's calls: what made their operands, which operands are kept, and which are let go."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from halfscope.formats import Format
from halfscope.torch import diagnose
from halfscope.torch.doctor.call_mode import CallMode
from halfscope.torch.doctor.calls import CallPlan, Kept
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.first_not_finite import FirstNotFinite
from halfscope.torch.doctor.program import Program, Run, Trial

pytestmark = pytest.mark.torch
FUNCTIONS = {torch.add: 2, torch.mul: 2, torch.maximum: 2, torch.matmul: 2, torch.sin: 1, torch.tanh: 1, torch.relu: 1}


def run_of(step: Callable[[], Any], trial: Trial, see: FirstNotFinite | None = None) -> Run:
    return Program(nn.Linear(1, 1), step, [], Format.of("fp16")).run(trial, see)


def drawn_steps(seed: int) -> list[tuple[Any, list[int]]]:
    """Functions, with the numbers of their operands among the results before; 0 and 1 are made first."""
    draw = random.Random(seed)
    functions = draw.choices(list(FUNCTIONS), k=60)
    return [(func, draw.choices(range(2 + at), k=FUNCTIONS[func])) for at, func in enumerate(functions)]


def computed(steps: list[tuple[Any, list[int]]], keeps: bool) -> None:
    """keeps: all results live on; else each goes after its last use, and its memory is used again."""
    values = {0: torch.rand(3, 3), 1: torch.rand(3, 3)}
    for at, (func, operands) in enumerate(steps):
        values[2 + at] = func(*(values[index] for index in operands))
        later = {index for _, needed in steps[at + 1 :] for index in needed}
        values = {index: value for index, value in values.items() if keeps or index in later}


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_ancestors_are_those_of_the_text_though_memory_is_used_again(seed: int, keeps: bool) -> None:
    steps = drawn_steps(seed)
    log = run_of(lambda: computed(steps, keeps), Trial(keeps=Kept())).log
    before: list[set[int]] = [set(), set()]
    for _, operands in steps:
        before.append({index for operand in operands for index in before[operand] | {operand}})
    assert [len(log.ancestors(call)) for call in log.calls] == [len(each) for each in before]
    assert all(call.is_forgotten and log.maker(call.result) is None for call in log.calls)


def test_results_of_calls_that_are_not_kept_are_let_go() -> None:
    alive: list[int] = []

    def step() -> None:
        results = []
        x = torch.rand(8, 8)
        for _ in range(50):
            x = torch.sin(x)
            results.append(weakref.ref(x))
        gc.collect()
        alive.append(sum(each() is not None for each in results))

    place = run_of(step, Trial(keeps=Kept())).log.calls[-1].place
    run_of(step, Trial(keeps=Kept(places=frozenset({place}))))
    assert alive == [1, 50]


def test_a_number_of_turns_at_a_place_keeps_operands() -> None:
    def step() -> None:
        x = torch.full((2,), 0.5)
        for _ in range(200):
            x = torch.sin(x)

    log = run_of(step, Trial(keeps=Kept())).log
    place = log.calls[-1].place
    log = run_of(step, Trial(keeps=Kept(places=frozenset({place})))).log
    calls = [call for call in log.calls if call.place == place]
    assert len(calls) == 200
    assert [call.is_forgotten for call in calls] == [False] * 64 + [True] * 136


def test_calls_are_kept_by_their_numbers() -> None:
    def step() -> None:
        x = torch.rand(2, 3)
        for _ in range(9):
            x = torch.sin(x.t())

    log = run_of(step, Trial(keeps=Kept(frozenset({3, 7})))).log
    assert [call.number for call in log.calls if not call.is_forgotten] == [3, 7]
    assert [call.result is None for call in log.calls] == [call.number not in (3, 7) for call in log.calls]


def test_the_turn_of_a_loop_that_overflows_first_keeps_its_operands() -> None:
    def step() -> None:
        x = torch.tensor([2.0])
        for _ in range(30):
            x = torch.mul(x, 2.0)

    first = FirstNotFinite()
    log = run_of(step, Trial(keeps=Kept()), first).log
    call = first.origins[0].call(log)
    assert call is not None and float(call.args[0]) == 2.0**15 and float(call.result) == float("inf")
    assert sum(not each.is_forgotten for each in log.calls) == 1


def test_an_operation_in_place_makes_what_is_read_after_it() -> None:
    def step() -> None:
        x = torch.rand(4)
        x.mul_(2)
        torch.sin(x.view(2, 2))

    log = run_of(step, Trial(keeps=Kept())).log
    assert [made.name for made in log.ancestors(log.calls[-1])] == ["view", "mul_", "rand"]
    assert list(log.writes.values()) == [log.calls[1].place]


def test_memory_of_a_fault_stays_near_that_of_a_step() -> None:
    """Results of a long chain in front of a fault that live at once while it is searched for."""
    most = {"step": 0, "search": 0}
    results: weakref.WeakSet = weakref.WeakSet()
    model = nn.Linear(64, 64)

    def loss(key: str) -> Any:
        with torch.no_grad():  # the step itself keeps one at a time
            x = torch.rand(64, 64)
            for _ in range(400):
                x = torch.sin(x)
                results.add(x)
                most[key] = max(most[key], len(results))
        return (model(x).square().sum() * 1e4).log()

    loss("step")
    report = diagnose(model, lambda: loss("search"))
    assert report.findings and "fp32's" in str(report).lower()
    assert most["search"] <= most["step"] + 2 * 64 + 2, most  # kept turns of the loop, and those near a change


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_a_diagnosis_lets_go_of_its_runs_without_a_collection(scale: float) -> None:
    """Their tensors would have memory beside those of the runs that follow."""
    model, x = nn.Linear(8, 4), torch.rand(3, 8)
    gc.collect()
    gc.disable()
    try:
        report = diagnose(model, lambda: (model(x).square().mean() * scale).log())
        left = [each for each in gc.get_objects() if type(each) is Examination]
    finally:
        gc.enable()
    assert bool(report.findings) is (scale > 1)
    assert not left


@pytest.mark.parametrize("asked", [set(), {"sin"}, {"cos"}, {"sin", "cos"}])
def test_a_change_finds_the_calls_that_it_asks_for(asked: set[str]) -> None:
    def step() -> None:
        for _ in range(40):
            torch.exp(torch.cos(torch.sin(torch.rand(2))))

    places = {place.name: place for place in run_of(step, Trial(keeps=Kept())).log.places}
    at_hand: list[list[str]] = []

    def change(mode: CallMode, func: Any, args: tuple, kwargs: dict) -> Any:
        made = [call for call in (mode.log.maker(args[0]),) if call is not None]
        made += [call for each in made if (call := mode.log.maker(each.args[0])) is not None]
        at_hand.append([call.name for call in made])
        return func(*args, **kwargs)

    plan = CallPlan(changes={places["exp"]: change}, asked=frozenset(places[name] for name in asked))
    run_of(step, Trial(calls=plan))
    expected = {"cos": ["cos"], "cos sin": ["cos", "sin"]}.get(" ".join(sorted(asked)), [])
    assert at_hand == [expected] * 40


@pytest.mark.parametrize("seed", range(40))
def test_calls_are_kept_within_half_of_the_bytes_of_all_results(seed: int) -> None:
    log = run_of(lambda: computed(drawn_steps(seed), False), Trial(keeps=Kept())).log
    draw = random.Random(seed)
    least = draw.choice([0, 72, 36 * len(log.calls)])
    calls = draw.sample(log.calls, k=len(log.calls))
    kept = log.first_within(calls, least)

    def taken(numbers: set[int]) -> int:
        return 36 * len({id(each) for call in calls if call.number in numbers for each in (call, *call.makers)})

    room = max(least, 36 * len(log.calls) // 2)
    assert taken(set(kept)) <= room
    assert all(taken({*kept, call.number}) > room for call in calls if call.number not in kept)
