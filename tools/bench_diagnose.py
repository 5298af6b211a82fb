"""Times `diagnose` beside an emulated step, and watched steps with a look at operations beside unwatched ones.

usage: bench_diagnose.py [ROUNDS]

The networks train without a fault, so that `diagnose` tries no remedy: a trial costs a recorded step more. Processor
time, one thread, in turn.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

from halfscope.torch import diagnose, emulate, watch
from watched_networks import Training, perceptron, resnet18

MOST_DIAGNOSE, MOST_WATCH = 4.0, 2.0  # times an emulated step, and times an unwatched one


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


def ratios_of_diagnose(training: Training, rounds: int) -> list[float]:
    """Times an emulated step."""
    found = []
    for turn in range(rounds + 1):
        with emulate(training.model, "fp16", optimizer=training.optimizer, compare_steps=()):
            emulated = seconds(training.step)
        diagnosed = seconds(lambda: diagnose(training.model, training.loss, scale=2.0**10))
        if turn:  # the first turn fills caches
            found.append(diagnosed / emulated)
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
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, one thread, {rounds} rounds; meant to be at most")
    print(f"{'':30} {'diagnose':>12} {'watch':>8} {'with operations':>16}")
    print(f"{'':30} {MOST_DIAGNOSE:>12.1f} {'':>8} {MOST_WATCH:>16.1f}")
    for name, network in NETWORKS.items():
        torch.manual_seed(0)
        diagnosed = statistics.median(ratios_of_diagnose(network(), rounds))
        alone, looking = (statistics.median(ratios_of_watch(network(), rounds, each)) for each in (False, True))
        print(f"{name:30} {diagnosed:12.2f} {alone:8.2f} {looking:16.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
