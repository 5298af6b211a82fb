"""Small models of transformers with random weights, saved in shards, and a step of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from torch import nn

from halfscope.torch import capture

WORDS, WIDTH, LENGTH = 100, 32, 12


def llama(**options: object) -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, **options,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def gpt2(**options: object) -> nn.Module:
    settings = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, **options}
    config = transformers.GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=WIDTH, n_layer=3, n_head=4, **settings
    )
    return transformers.GPT2LMHeadModel(config)


def t5() -> nn.Module:
    config = transformers.T5Config(
        vocab_size=WORDS, d_model=WIDTH, d_kv=8, d_ff=2 * WIDTH, num_layers=3, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(config)


def made(make: Callable[[], nn.Module], folder: Path) -> nn.Module:
    """A model, and its checkpoint in several shards."""
    torch.manual_seed(0)
    model = make()
    save(model, folder)
    return model


def save(model: nn.Module, folder: Path) -> None:
    model.save_pretrained(folder, max_shard_size="20KB")


def tokens() -> torch.Tensor:
    return torch.randint(WORDS, (2, LENGTH), generator=torch.Generator().manual_seed(1))


def loss_of(model: nn.Module) -> torch.Tensor:
    loss: torch.Tensor = model(input_ids=tokens(), labels=tokens()).loss
    return loss


def captured(make: Callable[[], nn.Module], name: str, folder: Path) -> Path:
    """Makes a model's checkpoint in `folder`, and the dump of a block in a step."""
    model = made(make, folder)
    dump = folder / "dump.safetensors"
    capture(model, name, dump)
    loss_of(model).backward()
    return dump
