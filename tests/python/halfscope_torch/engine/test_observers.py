"""Observers of emulated steps: what they are told of, and of whom nobody is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from halfscope.torch.emulate.emulation import Emulation
from halfscope.torch.emulate.training import Options, Trainee
from halfscope.torch.events.observer import Observer, Wants
from halfscope.torch.policy import Policy

pytestmark = pytest.mark.torch
COMPARED = Options(compare_steps=frozenset({1, 3}))


class Told(Observer):
    """Keeps the names of what it is told."""

    def __init__(self, wants: Wants = Wants.NOTHING) -> None:
        self.wants, self.events, self.casts, self.sites = wants, [], [], []

    def begin_step(self, plan: Any) -> None:
        self.events.append(f"begin {plan.number}")

    def cast(self, call: Any, cast: Any) -> None:
        self.casts.append((None if call is None else call.operation, cast.role, cast.before is not None, cast.name))

    def ran(self, ran: Any) -> None:
        self.events.append(ran.operation)
        self.sites.append(ran.forward is not None and ran.forward.site is not None)

    def arrived(self, owned: Any, gradient: Any, rounded: Any) -> None:
        self.events.append(f"arrived {owned.name}")

    def end_step(self, stepped: bool) -> None:
        self.events.append("end" if stepped else "left")


def network() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2))


def told(observer: Told, options: Options, steps: int = 3) -> Told:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Emulation(Trainee(model, [optimizer]), Policy("fp16", None, {}), replace(options, observers=(observer,))):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.ones(3, 6)).square().sum().backward()
            optimizer.step()
    return observer


def test_an_observer_is_told_of_compared_steps_from_begin_to_end() -> None:
    found = told(Told(), COMPARED).events
    assert [event for event in found if event.startswith("begin")] == ["begin 1", "begin 3"]
    assert found[0] == "begin 1" and found[-1] == "end"
    assert found.count("end") == 2


def test_a_step_that_is_left_is_told_of_too() -> None:
    assert told(Told(), Options(compare_steps=frozenset({2})), steps=1).events == ["begin 2", "left"]


@pytest.mark.parametrize("more", [{"zeros": True}, {"floor": True}, {"zeros": True, "floor": True}])
def test_arithmetic_of_twins_is_no_operation_of_the_training(more: dict[str, bool]) -> None:
    """Twins compute in hooks of gradients and nodes too, where the mode is on."""
    wants = Wants.ARRIVALS
    assert told(Told(wants), replace(COMPARED, **more)).events == told(Told(wants), COMPARED).events


def test_each_weight_gradient_arrives_once_a_step_where_that_is_wanted() -> None:
    found = told(Told(Wants.ARRIVALS), COMPARED).events
    names = [f"arrived {name}" for name, _ in network().named_parameters()]
    assert sorted(event for event in found if event.startswith("arrived")) == sorted(names * 2)
    assert not any(event.startswith("arrived") for event in told(Told(), COMPARED).events)


def test_a_step_computes_what_an_observer_wants_and_nothing_else() -> None:
    nothing, casts = told(Told(), COMPARED), told(Told(Wants.CASTS), COMPARED)
    assert not nothing.casts and not any(nothing.sites)
    assert casts.casts and not any(before for _, _, before, _ in casts.casts)
    both = told(Told(Wants.CASTS | Wants.NUMBERS_BEFORE | Wants.SITES), COMPARED)
    assert all(before for _, _, before, name in both.casts if name) and any(both.sites)
    assert [each[:2] for each in both.casts] == [each[:2] for each in casts.casts]


def test_casts_name_the_operation_under_way_and_none_between_two() -> None:
    found = told(Told(Wants.CASTS), COMPARED).casts
    assert ("addmm", "weight", False, "0.weight") in found and ("addmm", "activation", False, "0") in found
    assert (None, "weight_gradient", False, "0.weight") in found  # rounded by a hook


def test_an_operation_that_raises_is_under_way_no_longer() -> None:
    observer, layer = Told(Wants.CASTS), torch.nn.Linear(2, 2)
    options = replace(COMPARED, observers=(observer,))
    with Emulation(Trainee(layer, []), Policy("fp16", None, {}), options):
        with pytest.raises(RuntimeError, match="shapes"):
            layer(torch.ones(1, 3))
        observer.casts.clear()
        layer(torch.ones(1, 2)).sum().backward()
    roles = {role for operation, role, _, _ in observer.casts if operation is None}
    assert roles == {"weight_gradient"}
