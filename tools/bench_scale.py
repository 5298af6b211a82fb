"""Cost of each door on networks of real size, beside the untouched step: time, and the peak of memory.

usage: bench_scale.py [NETWORK ...] [--rounds N] [--threads N] [--doors DOOR ...] [--out FILE]

One network at a time, in a process of its own, each door in turn with the untouched step. Times are of the processor;
peaks are those of the tensors that live at once, weights included. Needs transformers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import nn

from halfscope.torch import diagnose, emulate, watch

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "peer"))

from peak_memory import peak_of, weights_of
from watched_networks import Training


def training_of(model: nn.Module, loss: Callable[[], torch.Tensor]) -> Training:
    """With plain SGD, whose state has no memory of its own."""
    return Training(model, torch.optim.SGD(model.parameters(), lr=1e-4), loss)


def gpt2() -> Training:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0))
    return language(model, model.config.vocab_size, (1, 128))


def llama() -> Training:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 20, "num_attention_heads": 16}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=32000, **sizes))
    return language(model, 32000, (1, 128))


def language(model: nn.Module, words: int, tokens: tuple[int, int]) -> Training:
    text = torch.randint(words, tokens)
    return training_of(model, lambda: model(input_ids=text, labels=text).loss)


def vit() -> Training:
    from transformers import ViTConfig, ViTForImageClassification

    return images(ViTForImageClassification(ViTConfig(num_labels=1000)), 2)


def resnet50() -> Training:
    from transformers import ResNetConfig, ResNetForImageClassification

    return images(ResNetForImageClassification(ResNetConfig(num_labels=1000)), 4)


def images(model: nn.Module, batch: int) -> Training:
    pictures, labels = torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,))
    return training_of(model, lambda: model(pixel_values=pictures, labels=labels).loss)


def layer_7b() -> Training:
    """One layer of a Llama of 7 billion weights, 64 tokens, with the gradient of a mean over its output."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = LlamaConfig(attn_implementation="sdpa")
    layer, x = LlamaDecoderLayer(config, 0), torch.randn(1, 64, config.hidden_size)
    angles = LlamaRotaryEmbedding(config)(x, torch.arange(64)[None])

    def loss() -> torch.Tensor:
        output = layer(x, position_embeddings=angles)
        output = output[0] if isinstance(output, tuple) else output
        return output.square().mean()

    return training_of(layer, loss)


NETWORKS: dict[str, Callable[[], Training]] = {
    "gpt2": gpt2, "llama-0.3b": llama, "vit-b": vit, "resnet-50": resnet50, "llama-7b-layer": layer_7b,
}  # fmt: skip


@dataclass(frozen=True)
class Door:
    """A look at a step. most, most_memory: times and peaks of the untouched step that it is meant to take."""

    look: Callable[[Training], Callable[[], Any]]  # returns one look; what it returns has `runs`, if several steps
    most: float
    most_memory: float | None = None


def of_diagnose(training: Training) -> Callable[[], Any]:
    return lambda: diagnose(training.model, training.loss, "autocast", scale=2.0**16, seconds=3600)


def of_emulation(policy: str, order: str | None = None, compares: bool = False) -> Callable[[Training], Any]:
    steps = range(1, 10**6) if compares else ()

    def door(training: Training) -> Callable[[], None]:
        options = {"optimizer": training.optimizer, "order": order, "compare_steps": steps}
        return step_within(emulate(training.model, policy, **options), training)

    return door


def of_watch(training: Training) -> Callable[[], None]:
    return step_within(watch(training.model, 1, optimizer=training.optimizer), training)


def step_within(door: AbstractContextManager, training: Training) -> Callable[[], None]:
    def step() -> None:
        with door:
            training.step()

    return step


DOORS = {
    "diagnose, a run": Door(of_diagnose, 2.0, 3.5),
    "emulate, compared": Door(of_emulation("fp16_mixed", "pytorch", compares=True), 4.0, 3.0),
    "emulate, PyTorch's sums": Door(of_emulation("fp16_mixed", "pytorch"), 1.6),
    "emulate, Hopper's sums": Door(of_emulation("fp16_mixed", "tensor_core(hopper)"), 2.5),
    "emulate, NVFP4": Door(of_emulation("nvfp4"), 3.0),
    "watch": Door(of_watch, 1.5),
}


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def peak_beside_weights(training: Training, work: Callable[[], Any]) -> int:
    training.model.zero_grad()
    return weights_of(training.model) + peak_of(work)


def measured(training: Training, doors: list[str], rounds: int) -> list[dict[str, Any]]:
    """A row for each door, printed as soon as it is known."""
    training.step()  # fills caches
    of_step = peak_beside_weights(training, training.step)
    return [row_of(training, name, rounds, of_step) for name in doors]


def row_of(training: Training, name: str, rounds: int, of_step: int) -> dict[str, Any]:
    door = DOORS[name]
    look = door.look(training)
    times, plain = [], []
    for _ in range(rounds):
        plain.append(seconds(training.step)[0])
        spent, report = seconds(look)
        times.append(spent / max(1, getattr(report, "runs", 1)))
    untouched = statistics.median(plain)
    row = {
        "door": name, "step": untouched, "times": statistics.median(times) / untouched, "most": door.most,
        "peaks": peak_beside_weights(training, look) / of_step, "most_peaks": door.most_memory,
    }  # fmt: skip
    asked = "" if door.most_memory is None else f" (at most {door.most_memory:g})"
    ratios = f"{row['times']:8.2f} x (at most {door.most:g}) {row['peaks']:8.2f} peaks{asked}"
    print(f"  {name:26} {untouched:8.2f} s a step {ratios}", flush=True)
    return row


def one_network(name: str, asked: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(asked.threads)
    torch.manual_seed(0)
    training = NETWORKS[name]()
    weights = sum(weight.numel() for weight in training.model.parameters())
    print(f"{name}: {weights / 1e6:.0f} million weights, {asked.threads} threads, {asked.rounds} rounds", flush=True)
    return {"name": name, "weights": weights, "rows": measured(training, asked.doors, asked.rounds)}


def each_network(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """One after the other, each in a process of its own, so that no memory of another is held."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.json"
        options = ["--rounds", str(asked.rounds), "--threads", str(asked.threads), "--out", str(path)]
        for name in asked.networks or NETWORKS:
            subprocess.run([sys.executable, __file__, name, *options, "--doors", *asked.doors], check=True)
            found += json.loads(path.read_text())["networks"]
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)}; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--doors", nargs="*", choices=list(DOORS), default=list(DOORS))
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    asked = parser.parse_args(arguments)
    unknown = [name for name in asked.networks if name not in NETWORKS]
    if unknown:
        parser.error(f"no network '{unknown[0]}'; give some of {', '.join(NETWORKS)}")
    networks = [one_network(asked.networks[0], asked)] if len(asked.networks) == 1 else each_network(asked)
    if asked.out is not None:
        about = {"torch": torch.__version__.partition("+")[0], "date": f"{date.today()}", "threads": asked.threads}
        asked.out.write_text(json.dumps({**about, "networks": networks}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
