"""State around several runs: brought back after each, and copied once."""

from __future__ import annotations

import random
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from halfscope.torch.doctor.kept_state import Copies, kept_state

pytestmark = pytest.mark.torch


def spoil(draw: random.Random, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Tensors of the state are written to, replaced and added."""
    for weight in model.parameters():
        kind = draw.randrange(4)
        if kind == 0:
            weight.data.mul_(2)
        elif kind == 1:
            weight.data = torch.rand_like(weight)
        elif kind == 2:
            weight.grad = torch.ones_like(weight)
    if draw.random() < 0.5:
        optimizer.step()
    model.register_buffer("count", torch.zeros(()))
    model.train(draw.random() < 0.5)


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    tensors = [*model.state_dict().values(), *(each for state in optimizer.state.values() for each in state.values())]
    return [model.training, [name for name, _ in model.named_buffers()], [tensor.clone() for tensor in tensors]]


@pytest.mark.parametrize("seed", range(40))
def test_each_run_begins_with_the_same_state(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    optimizer = draw.choice([torch.optim.Adam, torch.optim.SGD])(model.parameters(), lr=0.1)
    model(torch.rand(5, 3)).sum().backward()
    optimizer.step()
    before, copies, kept = state_of(model, optimizer), Copies(), []
    for _ in range(4):
        tensors = [*model.parameters(), *model.buffers()]
        with kept_state(model, tensors, [optimizer], copies):
            spoil(draw, model, optimizer)
        kept.append([elements.data_ptr() for _, _, elements in copies.of(tensors)])
        after = state_of(model, optimizer)
        assert after[:2] == before[:2]
        assert all(torch.equal(one, other) for one, other in zip(after[2], before[2], strict=True))
    assert kept == [kept[0]] * 4  # one copy


def test_a_tensor_with_other_memory_is_copied_anew() -> None:
    copies, tensor = Copies(), torch.ones(3)
    first = copies.of([tensor])[0][2]
    tensor.data = torch.full((3,), 2.0)
    second = copies.of([tensor])[0][2]
    assert first.tolist() == [1.0] * 3 and second.tolist() == [2.0] * 3
    assert copies.of([torch.zeros(2)])[0][2].tolist() == [0.0] * 2
    assert copies.of([tensor])[0][2] is not second  # it was let go
