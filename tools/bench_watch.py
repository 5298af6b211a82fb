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
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import NamedTuple

import torch
from torch import nn

from halfscope.torch import watch

STEPS = 10


class Task(NamedTuple):
    """A perceptron by the sizes of its layers."""

    sizes: tuple[int, ...]
    batch: int

    @property
    def parameters(self) -> int:
        return sum((i + 1) * o for i, o in zip(self.sizes, self.sizes[1:]))


TASKS = (Task((1024, 2048, 2048, 1792, 10), 256), Task((32,) * 61, 32))


class Histc:
    """The usual way without halfscope: torch.histc of the log2 of every output, its gradient and weight gradient."""

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
    """Seconds: by the clock, and of the processor."""

    clock: float
    processor: float


def training_step(task: Task, watching: Watching, stack: ExitStack) -> Callable[[], None]:
    """One step of a new model that is watched until `stack` is left."""
    torch.manual_seed(0)
    layers = [part for i, o in zip(task.sizes, task.sizes[1:]) for part in (nn.Linear(i, o), nn.ReLU())]
    model = nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    inputs, labels = torch.randn(task.batch, task.sizes[0]), torch.randint(task.sizes[-1], (task.batch,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    stack.enter_context(watching(model, optimizer))
    return step


def cost_of(step: Callable[[], None]) -> Cost:
    """Of STEPS steps, so that one of them is watched where every tenth is."""
    clock, processor = time.perf_counter(), time.process_time()
    for _ in range(STEPS):
        step()
    return Cost(time.perf_counter() - clock, time.process_time() - processor)


def compare(task: Task, threads: int, rounds: int) -> None:
    """A line per case: the cases take turns, and each is compared with its neighbours of the same round."""
    torch.set_num_threads(threads)
    costs: dict[str, list[Cost]] = {name: [] for name in CASES}
    with ExitStack() as stack:
        steps = {name: training_step(task, watching, stack) for name, watching in CASES.items()}
        for step in steps.values():
            for _ in range(STEPS):  # the first is the slowest
                step()
        for _ in range(rounds):
            for name, step in steps.items():
                costs[name].append(cost_of(step))
    for name, found in costs.items():
        pairs = list(zip(found, costs["alone"]))
        typical = statistics.median(cost.clock for cost in found) / STEPS
        clock = statistics.median(own.clock / alone.clock for own, alone in pairs)
        processor = statistics.median(own.processor / alone.processor for own, alone in pairs)
        print(f"{threads:7}  {name:24} {1e3 * typical:10.1f} {clock:9.2f} {processor:10.2f}", flush=True)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    for task in TASKS:
        layers = len(task.sizes) - 1
        size = f"{task.parameters:,} parameters in {layers} layers"
        print(f"{size}, batch {task.batch}, Adam; {rounds} rounds of {STEPS} steps")
        print(f"{'threads':>7}  {'':24} {'ms a step':>10} {'of alone':>9} {'processor':>10}")
        for threads in (1, 2):
            compare(task, threads, rounds)


if __name__ == "__main__":
    main()
