"""Times the steps of two PyTorch models: alone, watched, and with hooks that call torch.histc.

One has 10 million parameters in few layers; the other is all overhead: 60 layers of 32 x 32.

usage: bench_watch.py [ROUNDS]

The last column compares processor time, which says something on a machine that others use too.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import nn

from halfscope.torch import watch

STEPS = 20


class Task(NamedTuple):
    """A perceptron by the sizes of its layers."""

    sizes: tuple[int, ...]
    batch: int

    @property
    def parameters(self) -> int:
        return sum((i + 1) * o for i, o in zip(self.sizes, self.sizes[1:]))


TASKS = (Task((1024, 2048, 2048, 1792, 10), 256), Task((32,) * 61, 32))


class Histc:
    """What people do without halfscope: torch.histc of the log2 of every output, its gradient and weight gradient."""

    def __init__(self, model: nn.Module) -> None:
        layers = [module for module in model.modules() if not any(module.children())]
        self._hooks = [layer.register_forward_hook(self._after_forward) for layer in layers]
        self._hooks += [parameter.register_hook(self._count) for parameter in model.parameters()]

    def __enter__(self) -> Histc:
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _after_forward(self, _module: object, _inputs: object, output: torch.Tensor) -> None:
        self._count(output)
        output.register_hook(self._count)

    @staticmethod
    def _count(tensor: torch.Tensor) -> None:
        torch.histc(tensor.detach().abs().log2(), bins=277, min=-149, max=128)


Watching = Callable[[nn.Module, torch.optim.Optimizer], AbstractContextManager]
CASES: dict[str, Watching] = {
    "alone": lambda model, optimizer: nullcontext(),
    "watch(every=10)": lambda model, optimizer: watch(model, 10, optimizer=optimizer),
    "watch(every=1)": lambda model, optimizer: watch(model, 1, optimizer=optimizer),
    "torch.histc, every step": lambda model, optimizer: Histc(model),
}


class Cost(NamedTuple):
    """Mean seconds of a step: by the clock, and of the processor."""

    clock: float
    processor: float


def step_cost(task: Task, watching: Watching) -> Cost:
    """Over STEPS steps: two of them watched where every tenth is."""
    torch.manual_seed(0)
    layers = [part for i, o in zip(task.sizes, task.sizes[1:]) for part in (nn.Linear(i, o), nn.ReLU())]
    model = nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    inputs, labels = torch.randn(task.batch, task.sizes[0]), torch.randint(task.sizes[-1], (task.batch,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    with watching(model, optimizer):
        step()  # the first is always watched, and the slowest
        clock, processor = time.perf_counter(), time.process_time()
        for _ in range(STEPS):
            step()
        return Cost((time.perf_counter() - clock) / STEPS, (time.process_time() - processor) / STEPS)


def least(costs: list[Cost]) -> Cost:
    return Cost(min(cost.clock for cost in costs), min(cost.processor for cost in costs))


def compare(task: Task, threads: int, rounds: int) -> None:
    """A line per case."""
    torch.set_num_threads(threads)
    costs: dict[str, list[Cost]] = {name: [] for name in CASES}
    for _ in range(rounds):
        for name, watching in CASES.items():
            costs[name].append(step_cost(task, watching))
    alone = least(costs["alone"])
    for name, found in costs.items():
        typical, own = statistics.median(cost.clock for cost in found), least(found)
        ratios = f"{own.clock / alone.clock:9.2f} {own.processor / alone.processor:10.2f}"
        print(f"{threads:7}  {name:24} {1e3 * typical:10.1f} {ratios}", flush=True)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for task in TASKS:
        layers = len(task.sizes) - 1
        print(f"{task.parameters:,} parameters in {layers} layers, batch {task.batch}, Adam; {rounds} rounds of {STEPS} steps")
        print(f"{'threads':>7}  {'':24} {'ms a step':>10} {'of alone':>9} {'processor':>10}")
        for threads in (1, 2):
            compare(task, threads, rounds)


if __name__ == "__main__":
    main()
