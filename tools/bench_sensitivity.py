"""Cost of `sensitivity`: processor time in plain steps for each format and batch, and memory in peaks of a plain step.

usage: bench_sensitivity.py [ROUNDS] [--gpt2]

A plain step is a forward and a backward pass with gradients of all weights. Weights are in both peaks. --gpt2: also
GPT-2's 124 million weights at random, which needs transformers and 8 GB. One thread, in turn.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from bench_diagnose import Block, peak_of, seconds
from halfscope.torch import sensitivity

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests/peer")]
from watched_networks import perceptron, resnet18

FORMATS = ("mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp8_e4m3", "bf16")
BATCHES = 2
MOST_TIME, MOST_MEMORY = 3.0, 2.5  # plain steps for each format and batch, and peaks of a plain step


@dataclass(frozen=True)
class Case:
    model: nn.Module
    batch: torch.Tensor
    classes: Callable[[torch.Tensor], torch.Tensor] = lambda output: output

    def step(self) -> None:
        self.model.zero_grad()
        output = self._logits(self.model, self.batch).flatten(0, -2)
        nn.functional.cross_entropy(output, torch.zeros(len(output), dtype=torch.long)).backward()

    def look(self, formats: tuple[str, ...] = FORMATS) -> None:
        sensitivity(self.model, [self.batch] * BATCHES, formats, call=self._logits)

    @staticmethod
    def _logits(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        output = model(batch)
        return output if isinstance(output, torch.Tensor) else output.logits


def transformer(width: int, layers: int, sequences: int, length: int) -> Case:
    blocks = (Block(width, 4) for _ in range(layers))
    return Case(nn.Sequential(*blocks, nn.Linear(width, 100)), torch.randn(sequences, length, width))


def gpt2() -> Case:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(use_cache=False)).eval()
    return Case(model, torch.randint(50257, (4, 128)))


CASES: dict[str, Callable[[], Case]] = {
    "ResNet-18, 16 images of 32": lambda: Case(resnet18(torch.contiguous_format, autocast=False).model,
                                               torch.randn(16, 3, 32, 32)),
    "transformer, 4 x 256": lambda: transformer(256, 4, 8, 64),
    "perceptron, 1024 to 2048": lambda: Case(perceptron((1024, 2048, 2048, 10), 256).model, torch.randn(256, 1024)),
}  # fmt: skip


def costs(case: Case, rounds: int) -> tuple[float, float]:
    """Time for each format and batch, and memory, in those of a plain step."""
    case.step()
    step = statistics.median(seconds(case.step) for _ in range(2 * rounds + 1))
    case.model.zero_grad()
    look = statistics.median(seconds(case.look) for _ in range(rounds))
    weights = sum(weight.numel() * weight.element_size() for weight in case.model.parameters())
    peak = weights + peak_of(case.step)
    case.model.zero_grad()
    return look / (len(FORMATS) * BATCHES * step), (weights + peak_of(case.look)) / peak


def main() -> int:
    given = [each for each in sys.argv[1:] if each != "--gpt2"]
    rounds = int(given[0]) if given else 3
    cases = {**CASES, **({"GPT-2, 4 x 128 tokens": gpt2} if "--gpt2" in sys.argv else {})}
    torch.set_num_threads(1)
    print(f"PyTorch {torch.__version__}, one thread, {len(FORMATS)} formats, {BATCHES} batches; meant to be at most")
    print(f"{'':30} {'time':>8} {'memory':>8}\n{'':30} {MOST_TIME:8.1f} {MOST_MEMORY:8.1f}")
    for name, make in cases.items():
        torch.manual_seed(0)
        time, memory = costs(make(), rounds)
        print(f"{name:30} {time:8.2f} {memory:8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
