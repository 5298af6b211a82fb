"""Prints the table of what `lint` says of models of `transformers` and torchvision, at reduced width.

usage: lint_models.py

The table is in docs/guides/lint.md; a test compares the two.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
import torchvision
import transformers

from halfscope.torch import lint

FORMATS = ("fp32", "fp16", "bf16")
_WIDTH = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
_TEXT = {**_WIDTH, "vocab_size": 64}
_GROUPED = {**_TEXT, "num_key_value_heads": 2}


def _transformer(name: str, **options: int) -> Callable[[], torch.nn.Module]:
    """A model of `transformers` by its name there; options: of its configuration."""

    def make() -> torch.nn.Module:
        config = getattr(transformers, f"{name}Config")(**options)
        model: torch.nn.Module = getattr(transformers, f"{name}Model")(config)
        return model

    return make


def _vision(name: str) -> Callable[[], torch.nn.Module]:
    return lambda: getattr(torchvision.models, name)(weights=None)


MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "BERT": _transformer("Bert", **_TEXT),
    "GPT-2": _transformer("GPT2", vocab_size=64, n_positions=64, n_embd=32, n_layer=1, n_head=4),
    "GPT-NeoX": _transformer("GPTNeoX", **_TEXT),
    "Llama": _transformer("Llama", **_GROUPED),
    "Mistral": _transformer("Mistral", **_GROUPED),
    "Gemma": _transformer("Gemma", **_GROUPED, head_dim=8),
    "Qwen2": _transformer("Qwen2", **_GROUPED),
    "T5": _transformer("T5", vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=1, num_heads=4),
    "ViT": _transformer("ViT", **_WIDTH, image_size=16, patch_size=4),
    "ResNet-18": _vision("resnet18"),
    "MobileNetV3, small": _vision("mobilenet_v3_small"),
    "ShuffleNetV2, x0.5": _vision("shufflenet_v2_x0_5"),
    "MNASNet, 0.5": _vision("mnasnet0_5"),
}


def said_of(model: torch.nn.Module, format: str) -> str:
    """The first sentence of each finding on a model in a format; "-" where there is none."""
    reasons = (found.why.partition(". ")[0] for found in lint(model, format=format).findings)
    return "; ".join(reason.rstrip(".") for reason in reasons) or "-"


def table() -> list[str]:
    """Lines of the table, as Markdown."""
    lines = ["| model | FP32 | FP16 | BF16 |", "|---|---|---|---|"]
    for name, make in MODELS.items():
        torch.manual_seed(0)
        model = make()
        lines.append(f"| {name} | {' | '.join(said_of(model, format) for format in FORMATS)} |")
    return lines


if __name__ == "__main__":
    transformers.utils.logging.set_verbosity_error()
    print("\n".join(table()))
    sys.exit(0)
