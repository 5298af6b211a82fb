"""Times an emulated training step beside the untouched one, in turn: a ResNet-18, and a GPT-2 under recipes.

usage: bench_emulate.py [ROUNDS] [THREADS]

The ResNet has a batch of 32 images of 32 x 32. GPT-2 is timed where transformers is installed: 4 layers of width 192,
batch 4 of 128 tokens.

QPyTorch's CPU path is timed too where it is installed (pip install qtorch ninja): it rounds what layers return and
their gradients, and leaves sums, optimizer and functional operations as they are.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))

from halfscope.torch import emulate
from watched_networks import Training, resnet18

BATCH = 32
# Times as long as an untouched step: what an emulated one is meant to take.
MOST = {"fp32_sequential": 3.0, "tensor_core(hopper)": 6.0}
MODELS = ("pytorch", *MOST)
MOST_OF_RECIPE = 5.0
RECIPES = ("mxfp8", "nvfp4")

Steps = dict[str, Callable[[], None]]


def network() -> Training:
    torch.manual_seed(0)
    return resnet18(torch.contiguous_format, autocast=False, batch=BATCH)


def language_model() -> Training:
    """Raises ImportError without transformers."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    vocabulary, tokens = 2000, 128
    dropouts = dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), 0.0)
    sizes = {"n_embd": 192, "n_layer": 4, "n_head": 4, "vocab_size": vocabulary, "n_positions": tokens}
    model = GPT2LMHeadModel(GPT2Config(**sizes, **dropouts, bos_token_id=0, eos_token_id=0))
    text = torch.randint(vocabulary, (4, tokens))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return Training(model, optimizer, lambda: model(text, labels=text).loss)


def emulated(training: Training, policy: str, **options: Any) -> Callable[[], None]:
    """A step under a policy."""
    emulation = emulate(training.model, policy, optimizer=training.optimizer, compare_steps=(), **options)

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


def steps_of_resnet() -> Steps:
    steps: Steps = {"untouched": network().step}
    steps |= {f"emulated, {model}": emulated(network(), "fp16_mixed", order=model) for model in MODELS}
    peer = qpytorch()
    return steps if peer is None else {**steps, "QPyTorch": peer}


def steps_of_gpt2() -> Steps:
    """Without transformers there are none."""
    try:
        untouched = language_model()
    except ImportError:
        return {}
    return {"untouched": untouched.step, **{recipe: emulated(language_model(), recipe) for recipe in RECIPES}}


def medians(steps: Steps, rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            started = time.perf_counter()
            step()
            if turn:  # the first turn fills caches
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(found) for name, found in times.items()}


def main(arguments: list[str]) -> int:
    rounds = int(arguments[0]) if arguments else 7
    torch.set_num_threads(int(arguments[1]) if len(arguments) > 1 else 1)
    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, {rounds} rounds in turn")
    most = {f"emulated, {model}": times for model, times in MOST.items()} | dict.fromkeys(RECIPES, MOST_OF_RECIPE)
    for network_name, steps in (("ResNet-18", steps_of_resnet()), ("GPT-2, 192 wide", steps_of_gpt2())):
        found = medians(steps, rounds)
        for name, median in found.items():
            target = f"  (at most {most[name]:g} x)" if name in most else ""
            ratio = median / found["untouched"]
            print(f"{network_name:16} {name:30} {1e3 * median:8.1f} ms  {ratio:5.2f} x{target}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
