"""Times the steps of PyTorch models: alone, watched, and with hooks that call torch.histc.

One perceptron has 10 million parameters in few layers; the other is all overhead: 60 layers of 32 x 32. Watched and
unwatched steps of a ResNet-18 alternate, plain and in channels_last, in FP32 and in BF16 autocast.

usage: bench_watch.py [ROUNDS]

Processor time says something on a machine that others use too.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))

from halfscope.torch import watch
from watched_networks import Training, perceptron, resnet18

STEPS = 10
MOST = 1.3  # times as long as an unwatched step of a ResNet-18: what a watched one is meant to take


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
    training = perceptron(task.sizes, task.batch)
    stack.enter_context(watching(training.model, training.optimizer))
    return training.step


def cost_of(step: Callable[[], None]) -> Cost:
    """Times of STEPS steps, so that one of them is watched where every tenth is."""
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


LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def alternate(training: Training, pairs: int) -> tuple[float, float]:
    """Processor time of an unwatched step, and median of that of a watched one beside its neighbour's."""
    unwatched, ratios = [], []
    with watch(training.model, 2, optimizer=training.optimizer):
        training.step()  # the first is watched
        for _ in range(pairs):
            watched_time = processor_time(training.step)
            unwatched.append(processor_time(training.step))
            ratios.append(watched_time / unwatched[-1])
    return statistics.median(unwatched), statistics.median(ratios)


def processor_time(step: Callable[[], None]) -> float:
    started = time.process_time()
    step()
    return time.process_time() - started


def compare_resnets(pairs: int) -> None:
    torch.set_num_threads(1)
    print(f"ResNet-18, 32 x 32, batch 16, AdamW, one thread; {pairs} pairs of steps, meant to be at most {MOST}")
    print(f"{'':32} {'ms unwatched':>12} {'watched':>9}")
    for layout, memory_format in LAYOUTS.items():
        for autocast in (False, True):
            torch.manual_seed(0)
            alone, ratio = alternate(resnet18(memory_format, autocast), pairs)
            name = f"{layout}, {'BF16 autocast' if autocast else 'FP32'}"
            print(f"{name:32} {1e3 * alone:12.1f} {ratio:9.2f}", flush=True)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    for task in TASKS:
        layers = len(task.sizes) - 1
        size = f"{task.parameters:,} parameters in {layers} layers"
        print(f"{size}, batch {task.batch}, Adam; {rounds} rounds of {STEPS} steps")
        print(f"{'threads':>7}  {'':24} {'ms a step':>10} {'of alone':>9} {'processor':>10}")
        for threads in (1, 2):
            compare(task, threads, rounds)
    compare_resnets(4 * rounds)


if __name__ == "__main__":
    main()
