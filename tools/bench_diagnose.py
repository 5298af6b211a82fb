"""Cost of `diagnose`: runs of the step, processor time and memory; and of a watch's look at operations.

usage: bench_diagnose.py [ROUNDS] [PLANTED]

Healthy networks: runs, runs with quick=True, processor time in steps of PyTorch's own, and the peak of memory in peaks
of PyTorch's own step, weights included; the same peak for a step whose loss overflows in FP16. Then PLANTED random
networks of each kind of planted fault of the tests: the median of the runs. One thread, in turn.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from halfscope.torch import diagnose, watch

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / folder) for folder in ("tests/peer", "tests/python/halfscope_torch/doctor")]
from peak_memory import peak_of, weights_of
from planted_faults import FAULTS, planted
from tie_faults import TIES
from typed_remedies import load
from unforeseen_faults import UNFORESEEN
from watched_networks import Training, perceptron, resnet18

MOST_RUNS, MOST_QUICK, MOST_OF_FAULT = 8, 3, 31  # runs: healthy, quick, a fault in the median
MOST_MEMORY, MOST_WATCH = 3.0, 2.0  # peaks of a step, and times of an unwatched step


class Block(nn.Module):
    """Attention and a gated product, written out: most operations lie between layers."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.queries, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.gate, self.up, self.down = (
            nn.Linear(width, 2 * width),
            nn.Linear(width, 2 * width),
            nn.Linear(2 * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.queries(self.first(x)).view(batch, length, self.heads, -1).transpose(1, 2).chunk(3, -1)
        query, key, value = parts
        scores = (query / (width // self.heads) ** 0.5) @ key.transpose(-1, -2)
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        heads = torch.softmax(scores.masked_fill(mask, -1e4), -1) @ value
        x = x + self.out(heads.transpose(1, 2).reshape(batch, length, width))
        y = self.second(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def transformer(width: int, layers: int, tokens: tuple[int, int]) -> Training:
    """tokens: sequences of a batch, and their length."""
    model = nn.Sequential(*(Block(width, 4) for _ in range(layers)), nn.Linear(width, 10))
    inputs, labels = torch.randn(*tokens, width), torch.randint(10, (tokens[0],))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    return Training(model, optimizer, lambda: nn.functional.cross_entropy(model(inputs).mean(1), labels))


NETWORKS: dict[str, Callable[[], Training]] = {
    "ResNet-18, batch 16": lambda: resnet18(torch.contiguous_format, autocast=False),
    "transformer, 4 x 256": lambda: transformer(256, 4, (8, 64)),
    "transformer, 4 x 32": lambda: transformer(32, 4, (8, 16)),
    "perceptron, 1024 to 2048": lambda: perceptron((1024, 2048, 2048, 10), 256),
    "perceptron, 60 layers of 32": lambda: perceptron((32,) * 61, 32),
}


def seconds(step: Callable[[], object]) -> float:
    started = time.process_time()
    step()
    return time.process_time() - started


def cost_of_healthy(training: Training, rounds: int) -> tuple[int, int, float]:
    """Runs, runs of a quick look, and time in that of a step."""
    model = training.model

    def look(quick: bool = False) -> Any:
        return diagnose(model, training.loss, scale=2.0**10, quick=quick, seconds=600)

    def step() -> None:
        model.zero_grad()
        training.loss().backward()

    report, quick = look(), look(quick=True)
    assert report.is_healthy, report
    times = statistics.median(seconds(look) for _ in range(rounds)) / statistics.median(seconds(step) for _ in range(9))
    return report.runs, quick.runs, times


def memory_of(training: Training) -> tuple[float, float]:
    """Peaks of `diagnose` in peaks of a step, weights included: of the step as it is, and of one with a fault."""
    model = training.model

    def faulty() -> torch.Tensor:
        return torch.log(training.loss() * 1e6)

    def peak_beside(work: Callable[[], object]) -> int:
        model.zero_grad()
        return weights + peak_of(work)

    weights = weights_of(model)

    def look(loss: Callable[[], torch.Tensor], seconds: float) -> object:
        return diagnose(model, loss, scale=2.0**10, seconds=seconds)

    of_step = peak_beside(lambda: training.loss().backward())
    healthy = peak_beside(lambda: look(training.loss, 600))
    return healthy / of_step, peak_beside(lambda: look(faulty, 60)) / of_step


def runs_of_faults(number: int) -> list[int]:
    """Runs of the search over planted faults that spoil a step."""
    every = {**FAULTS, **UNFORESEEN, **TIES}
    found: list[int] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in every:
            for seed in range(number):
                path = Path(folder) / f"{kind}_{seed}.py"
                path.write_text(planted(seed, kind, every).source)
                module = load(path)
                report = diagnose(module.net, partial(module.loss, module.net, module.inputs))
                found += [report.runs] if report.findings else []
    return found


def ratios_of_watch(training: Training, rounds: int, operations: bool) -> list[float]:
    """Times of a watched step beside the unwatched one that follows it."""
    found = []
    with watch(training.model, 2, optimizer=training.optimizer, operations=operations):
        training.step()  # the first is watched
        for _ in range(4 * rounds):
            watched = seconds(training.step)
            found.append(watched / seconds(training.step))
    return found


def main() -> int:
    rounds, number = (int(sys.argv[at]) if len(sys.argv) > at else default for at, default in ((1, 3), (2, 4)))
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, one thread, {rounds} rounds; meant to be at most")
    names = ("runs", "quick", "times", "memory", "of fault", "watch", "with operations")
    print(f"{'':30} " + " ".join(f"{name:>8}" for name in names))
    most = (MOST_RUNS, MOST_QUICK, "", MOST_MEMORY, MOST_MEMORY, "", MOST_WATCH)
    print(f"{'':30} " + " ".join(f"{each:>{max(8, len(name))}}" for each, name in zip(most, names)))
    for name, network in NETWORKS.items():
        torch.manual_seed(0)
        runs, quick, times = cost_of_healthy(network(), rounds)
        memory, fault = memory_of(network())
        alone, looking = (statistics.median(ratios_of_watch(network(), rounds, each)) for each in (False, True))
        costs = f"{runs:8} {quick:8} {times:8.1f} {memory:8.2f} {fault:8.2f} {alone:8.2f} {looking:15.2f}"
        print(f"{name:30} {costs}", flush=True)
    found = runs_of_faults(number)
    middle, longest = statistics.median(found), max(found)
    print(f"{len(found)} planted faults: {middle:g} runs in the median (meant {MOST_OF_FAULT}), {longest} at most")
    return 0


if __name__ == "__main__":
    sys.exit(main())
