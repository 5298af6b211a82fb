"""PyTorch models whose gradients and updates are known: what the tests of `watch` count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

ELEMENTS = 1000
TINY, SMALL = 2.0**-30, 2.0**-20  # gradients that FP16 flushes, and that it makes subnormal


class Planted(torch.nn.Module):
    """Two layers that multiply; the loss gives 300 of 1000 outputs gradients that underflow."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Scale()
        self.second = Scale()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


class Scale(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(ELEMENTS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * x


def planted_gradient() -> torch.Tensor:
    gradient = torch.full((ELEMENTS,), SMALL)
    gradient[:300] = TINY
    gradient[-50:] = 0
    return gradient


def train(model: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: int, scaler=None) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (model(torch.ones(ELEMENTS)) * planted_gradient()).sum()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            (loss * scaler.get_scale()).backward()
            scaler.step(optimizer)
            scaler.update()


def records(folder: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (folder / "watched/seed0" / name).read_text().splitlines()]


class Scaler:
    """A GradScaler as `watch` needs it, for CPUs in older versions: a step that is skipped is one."""

    def __init__(self, scale: float, skips: set[int] = frozenset()) -> None:
        self._scale, self._skips, self._steps = scale, skips, 0

    def get_scale(self) -> float:
        return self._scale

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self._steps += 1
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad /= self._scale
        if self._steps not in self._skips:
            optimizer.step()

    def update(self) -> None:
        if self._steps in self._skips:
            self._scale /= 2


class Fused(torch.optim.SGD):
    """An optimizer that unscales by itself and skips by itself, as PyTorch's fused ones do."""

    grad_scale = found_inf = None

    def step(self, closure=None) -> None:
        if self.found_inf:
            return
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.data -= group["lr"] * parameter.grad / self.grad_scale


class FusedScaler(Scaler):
    """GradScaler's treatment of such a one: it steps always, and passes its finding on."""

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        self._steps += 1
        optimizer.grad_scale, optimizer.found_inf = (
            torch.tensor(self._scale),
            torch.tensor(float(self._steps in self._skips)),
        )
        optimizer.step()
        del optimizer.grad_scale, optimizer.found_inf
