"""A Llama of learned positions, and Python's own documentation as characters to train it on."""

from __future__ import annotations

from pydoc_data import topics

import torch
from torch import nn

WIDTH, INNER, LAYERS, HEADS, LENGTH = 96, 256, 3, 4, 64
Tensor = torch.Tensor


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, INNER, bias=False) for _ in range(2))
        self.down = nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        y, shape = self.first(x), (*x.shape[:2], HEADS, -1)
        q, k, v = (layer(y).view(shape).transpose(1, 2) for layer in (self.q, self.k, self.v))
        heads = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(heads.transpose(1, 2).reshape(x.shape))
        y = self.second(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Characters (batch, time) to logits of the next ones; positions are learned."""

    def __init__(self, characters: int, layers: int = LAYERS) -> None:
        super().__init__()
        self.embed, self.positions = nn.Embedding(characters, WIDTH), nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, characters, bias=False)
        with torch.no_grad():
            self.embed.weight.mul_(0.02)

    def forward(self, characters: Tensor) -> Tensor:
        x = self.embed(characters) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def text() -> Tensor:
    """Characters by number."""
    every = "\n".join(topics.topics.values())
    number = {letter: at for at, letter in enumerate(sorted(set(every)))}
    return torch.tensor([number[letter] for letter in every])


def batches_of(letters: Tensor, count: int, size: int, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(letters) - LENGTH - 1, (count, size), generator=generator)
    return [torch.stack([letters[start : start + LENGTH + 1] for start in batch]) for batch in starts]
