"""Rules for single operations, in a forward pass that activation checkpointing computes again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.utils.checkpoint import checkpoint

from halfscope.torch import emulate

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Parts(nn.Module):
    """Products of one line in each of three parts, which are recomputed or not; several in the last line."""

    def __init__(self, run: Callable) -> None:
        super().__init__()
        self.scale, self._run = nn.Parameter(torch.linspace(0.1, 3, 4)), run

    def _part(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.scale * x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = self._run(self._part, x)
        return self._run(lambda h: self.scale * h * 1.1 * self.scale, x)


@pytest.mark.parametrize("is_reentrant", [False, True])
@pytest.mark.parametrize("row", ["mul", "mul.1", "mul.2", "mul.3", "mul.4", "mul.6", "tanh.2"])
def test_a_rule_holds_for_an_operation_that_is_recomputed(row: str, is_reentrant: bool) -> None:
    gradients = []
    for run in (lambda part, x: part(x), lambda part, x: checkpoint(part, x, use_reentrant=is_reentrant)):
        model = Parts(run)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with emulate(model, "e5m3", optimizer=optimizer, exceptions={f"*:{row}": "fp32"}, compare_steps=[]):
            x = torch.linspace(-2, 2, 4).requires_grad_()
            model(x).square().sum().backward()
            gradients.append(x.grad)  # each part rounds its gradients of weights
    assert torch.equal(*gradients)


def test_the_rules_of_that_test_change_its_numbers() -> None:
    found = set()
    for row in ("mul.1", "mul.2", "mul.3", "tanh.2"):
        model = Parts(lambda part, x: part(x))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        with emulate(model, "e5m3", optimizer=optimizer, exceptions={f"*:{row}": "fp32"}):
            x = torch.linspace(-2, 2, 4).requires_grad_()
            model(x).square().sum().backward()
            found.add(tuple(x.grad.tolist()))
    assert len(found) == 4
