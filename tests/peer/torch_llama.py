"""The llama of sim/models for PyTorch, as a function of weights that have the simulator's names and order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

Weights = Mapping[str, torch.Tensor]  # a matrix is (in, out), an embedding (tokens, width)
NORM_EPSILON = 1e-6
ROTARY_BASE = 10_000.0


def rms_norm(weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    gamma = weights[f"{name}.gamma"]
    return functional.rms_norm(x, gamma.shape, gamma, NORM_EPSILON)


def rotary(x: torch.Tensor) -> torch.Tensor:
    """x (..., time, channels) with channels i and i + channels / 2 as one complex number, turned by the position."""
    time, channels = x.shape[-2:]
    rates = ROTARY_BASE ** (-torch.arange(0, channels, 2, dtype=torch.float64) / channels)
    angles = torch.arange(time, dtype=torch.float64)[:, None] * rates
    cosines, sines = (part.to(x.dtype).repeat(1, 2) for part in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat([-second, first], dim=-1) * sines


@dataclass
class Llama:
    """Logits (batch, time, vocabulary)."""

    heads: int
    key_value_heads: int
    layers: int

    def attention(self, weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
        def heads_of(part: str, heads: int) -> torch.Tensor:
            projected = x @ weights[f"{name}.{part}.weight"]
            return projected.unflatten(-1, (heads, -1)).transpose(1, 2)

        query = rotary(heads_of("query", self.heads))
        key = rotary(heads_of("key", self.key_value_heads))
        value = heads_of("value", self.key_value_heads)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return found.transpose(1, 2).flatten(2) @ weights[f"{name}.output.weight"]

    def feed_forward(self, weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
        gate, up, down = (weights[f"{name}.{part}.weight"] for part in ("gate", "up", "down"))
        return (functional.silu(x @ gate) * (x @ up)) @ down

    def logits(self, weights: Weights, tokens: torch.Tensor) -> torch.Tensor:
        x = functional.embedding(tokens, weights["embedding"])
        for layer in range(1, self.layers + 1):
            attention, network = f"layer{layer}.attention", f"layer{layer}.feed_forward"
            x = x + self.attention(weights, attention, rms_norm(weights, f"{attention}.norm", x))
            x = x + self.feed_forward(weights, network, rms_norm(weights, f"{network}.norm", x))
        return rms_norm(weights, "norm", x) @ weights["output.weight"]


class LlamaModule(nn.Module):
    """The default llama with random weights, to be timed."""

    def __init__(self, vocabulary: int = 2048, width: int = 128, hidden: int = 352) -> None:
        super().__init__()
        self.llama = Llama(heads=4, key_value_heads=2, layers=3)
        shapes = {"embedding": (vocabulary, width), "norm.gamma": (width,), "output.weight": (width, vocabulary)}
        for layer in range(1, self.llama.layers + 1):
            attention, network = f"layer{layer}.attention", f"layer{layer}.feed_forward"
            shapes |= {f"{part}.norm.gamma": (width,) for part in (attention, network)}
            shapes |= {f"{attention}.{part}.weight": (width, width) for part in ("query", "output")}
            shapes |= {f"{attention}.{part}.weight": (width, width // 2) for part in ("key", "value")}
            shapes |= {f"{network}.{part}.weight": (width, hidden) for part in ("gate", "up")}
            shapes[f"{network}.down.weight"] = (hidden, width)
        self.names = list(shapes)
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(shape) / shape[0] ** 0.5 if len(shape) == 2 else torch.ones(shape))
            for shape in shapes.values()
        )

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.llama.logits(dict(zip(self.names, self.weights, strict=True)), tokens)


def llama_loss(
    network: nn.Module, batch: int = 8, time: int = 64, vocabulary: int = 2048
) -> Callable[[], torch.Tensor]:
    """The cross entropy of random words."""

    def loss() -> torch.Tensor:
        tokens = torch.randint(vocabulary, (batch, time + 1))
        return functional.cross_entropy(network(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return loss
