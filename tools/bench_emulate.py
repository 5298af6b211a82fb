"""Times an emulated training step of a ResNet-18 beside the untouched one, in turn, batch 32 of 32 x 32 images.

usage: bench_emulate.py [ROUNDS] [THREADS]

QPyTorch's CPU path is timed too where it is installed (pip install qtorch ninja): it rounds what layers return and
their gradients, and leaves sums, optimizer and functional operations as they are.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))

from halfscope.torch import emulate
from watched_networks import Training, resnet18

BATCH = 32
# Times as long as an untouched step: what an emulated one is meant to take.
MOST = {"fp32_sequential": 3.0, "tensor_core(hopper)": 6.0}
MODELS = ("pytorch", *MOST)


def network() -> Training:
    torch.manual_seed(0)
    return resnet18(torch.contiguous_format, autocast=False, batch=BATCH)


def emulated(accumulate: str) -> Callable[[], None]:
    """A step under fp16_mixed, entered for good."""
    training = network()
    emulation = emulate(
        training.model, "fp16_mixed", optimizer=training.optimizer, accumulate=accumulate, compare_steps=()
    )

    def step() -> None:
        with emulation:
            training.step()

    return step


def qpytorch() -> Callable[[], None] | None:
    """FP16 behind every layer, forward and backward; None where QPyTorch is not installed."""
    try:
        from qtorch import FloatingPoint
        from qtorch.auto_low import lower
    except ImportError:
        return None
    training = network()
    half = FloatingPoint(exp=5, man=10)
    lower(
        training.model, layer_types=["conv", "linear", "activation", "normalization", "pool"],
        forward_number=half, backward_number=half, forward_rounding="nearest", backward_rounding="nearest",
    )  # fmt: skip
    return training.step


def main(arguments: list[str]) -> int:
    rounds = int(arguments[0]) if arguments else 7
    torch.set_num_threads(int(arguments[1]) if len(arguments) > 1 else 1)
    steps: dict[str, Callable[[], None]] = {"untouched": network().step}
    steps |= {f"emulated, {model}": emulated(model) for model in MODELS}
    peer = qpytorch()
    if peer is not None:
        steps["QPyTorch"] = peer
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            if turn:  # the first turn fills caches
                times[name].append(time.perf_counter() - started)
    untouched = statistics.median(times["untouched"])
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, batch {BATCH}, {rounds} rounds in turn")
    for name, found in times.items():
        most = MOST.get(name.removeprefix("emulated, "))
        target = f"  (at most {most:g} x)" if most else ""
        median = statistics.median(found)
        print(f"{name:30} {1e3 * median:8.1f} ms  {median / untouched:5.2f} x{target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
