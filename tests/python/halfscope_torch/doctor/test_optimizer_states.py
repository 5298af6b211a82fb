"""Runs of a step whose optimizers have a state already: the same state in each run, by its name, and afterwards too."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

from halfscope.formats import Format
from halfscope.torch.doctor.outcomes import FROM_OUTSIDE
from halfscope.torch.doctor.program import Program, Trial

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
OPTIMIZERS: dict[str, Any] = {
    "momentum": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9), "adam": torch.optim.AdamW,
    "amsgrad": lambda weights: torch.optim.Adam(weights, amsgrad=True), "adagrad": torch.optim.Adagrad,
    "rmsprop": lambda weights: torch.optim.RMSprop(weights, momentum=0.5, centered=True),
    "rprop": torch.optim.Rprop, "lbfgs": lambda weights: torch.optim.LBFGS(weights, max_iter=3),
}  # fmt: skip


def warm_program(name: str) -> tuple[Program, Any]:
    torch.manual_seed(len(name))
    net, x = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)), torch.randn(8, 6)
    optimizer = OPTIMIZERS[name](list(net.parameters()))

    def step() -> torch.Tensor:
        def loss() -> torch.Tensor:
            optimizer.zero_grad()
            value = functional.mse_loss(net(x), torch.ones(8, 3))
            value.backward()
            return value

        return optimizer.step(loss)

    for _ in range(3):
        step()
    return Program(net, step, [optimizer], Format.of("fp16")), optimizer


def is_same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return list(first) == list(second) and all(is_same(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(is_same, first, second))
    return bool(first == second)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_state_is_the_same_in_each_run(name: str) -> None:
    program, optimizer = warm_program(name)
    before = copy.deepcopy(optimizer.state_dict()["state"])
    outcomes = []
    for trial in (Trial(is_exact=True), Trial()):
        for _ in range(4):
            garbage = [torch.full((9, 6), 7.0) for _ in range(len(outcomes))]
            outcomes.append(program.run(trial).outcome)
            del garbage
    assert is_same(before, optimizer.state_dict()["state"])
    for outcome in outcomes:
        assert set(outcome.changes) == set(outcomes[0].changes)
        assert not any(change.endswith(FROM_OUTSIDE) for change in outcome.changes)
    for first, again in ((outcomes[0], outcomes[3]), (outcomes[4], outcomes[7])):
        assert is_same(dict(sorted(first.changes.items())), dict(sorted(again.changes.items())))
