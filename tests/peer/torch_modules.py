"""The llama and the transformer of sim/models as modules whose names are those of the simulator's layers."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from torch_llama import NORM_EPSILON, rotary
from torch_translation_networks import POSITION_AMPLITUDE, Sentences, sinusoids


class Named(nn.Module):
    """Children by name."""

    def __init__(self, children: Mapping[str, nn.Module]) -> None:
        super().__init__()
        for name, child in children.items():
            self.add_module(name, child)


class Attention(nn.Module):
    """Heads of queries, and of keys and values where they are fewer; rotary positions or none."""

    def __init__(self, width: int, heads: tuple[int, int], bias: bool, norm: nn.Module, turns: bool) -> None:
        super().__init__()
        self.norm, self.turns, (self.heads, self.key_value_heads) = norm, turns, heads
        narrow = width // self.heads * self.key_value_heads
        self.query, self.output = (nn.Linear(width, width, bias) for _ in range(2))
        self.key, self.value = (nn.Linear(width, narrow, bias) for _ in range(2))

    def forward(
        self, x: torch.Tensor, memory: torch.Tensor | None = None, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """x + attention of the normalised x (batch, time, width) to itself, or to `memory`.

        mask: True where keys are seen; None looks back.
        """
        normal = self.norm(x)
        seen = normal if memory is None else memory
        query = self._heads_of(self.query(normal), self.heads, self.turns)
        key = self._heads_of(self.key(seen), self.key_value_heads, self.turns)
        value = self._heads_of(self.value(seen), self.key_value_heads, False)
        found = functional.scaled_dot_product_attention(
            query, key, value, mask, is_causal=mask is None, enable_gqa=self.heads != self.key_value_heads
        )
        return x + self.output(found.transpose(1, 2).flatten(2))

    @staticmethod
    def _heads_of(projected: torch.Tensor, heads: int, turns: bool) -> torch.Tensor:
        split = projected.unflatten(-1, (heads, -1)).transpose(1, 2)
        return rotary(split) if turns else split


class GatedNetwork(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width, NORM_EPSILON)
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normal = self.norm(x)
        return x + self.down(functional.silu(self.gate(normal)) * self.up(normal))


class Network(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.norm, self.inner, self.outer = nn.LayerNorm(width), nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.outer(torch.relu(self.inner(self.norm(x))))


class Llama(nn.Module):
    """Logits (batch, time, vocabulary) of tokens (batch, time)."""

    def __init__(self, weights: Mapping[str, torch.Tensor], heads: tuple[int, int]) -> None:
        super().__init__()
        words, width = weights["embedding"].shape
        self.embedding = nn.Embedding(words, width)
        self.layers: list[Named] = []
        while f"layer{len(self.layers) + 1}.feed_forward.up.weight" in weights:
            name = f"layer{len(self.layers) + 1}"
            hidden = weights[f"{name}.feed_forward.up.weight"].shape[1]
            attention = Attention(width, heads, False, nn.RMSNorm(width, NORM_EPSILON), turns=True)
            self.layers.append(Named({"attention": attention, "feed_forward": GatedNetwork(width, hidden)}))
            self.add_module(name, self.layers[-1])
        self.norm, self.output = nn.RMSNorm(width, NORM_EPSILON), nn.Linear(width, words, bias=False)
        load(self, weights)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer.feed_forward(layer.attention(x))
        return self.output(self.norm(x))


class Transformer(nn.Module):
    """Logits (batch, target, vocabulary) of sentence pairs; those behind a target's end count for nothing."""

    def __init__(self, weights: Mapping[str, torch.Tensor], heads: int) -> None:
        super().__init__()
        (sources, width), (targets, _) = (weights[f"{side}_embedding"].shape for side in ("source", "target"))
        hidden = weights["encoder1.feed_forward.inner.weight"].shape[1]
        self.source_embedding, self.target_embedding = nn.Embedding(sources, width), nn.Embedding(targets, width)
        self.sides: dict[str, list[Named]] = {}
        for side, parts in (("encoder", ("self",)), ("decoder", ("self", "source"))):
            count = sum(f"{side}{at}.self.query.weight" in weights for at in range(1, 100))
            self.sides[side] = [self._layer(width, hidden, heads, parts) for _ in range(count)]
            for at, layer in enumerate(self.sides[side], start=1):
                self.add_module(f"{side}{at}", layer)
            self.add_module(side, Named({"norm": nn.LayerNorm(width)}))
        self.output = nn.Linear(width, targets)
        load(self, weights)

    @staticmethod
    def _layer(width: int, hidden: int, heads: int, parts: tuple[str, ...]) -> Named:
        attentions = {part: Attention(width, (heads, heads), True, nn.LayerNorm(width), turns=False) for part in parts}
        return Named({**attentions, "feed_forward": Network(width, hidden)})

    def forward(self, batch: Sentences) -> torch.Tensor:
        keys = ~batch.hidden_keys()[:, None, None]
        source = self._embedded(self.source_embedding, batch.source)
        for layer in self.sides["encoder"]:
            source = layer.feed_forward(layer.get_submodule("self")(source, mask=keys))
        source, x = self.encoder.norm(source), self._embedded(self.target_embedding, batch.target)
        for layer in self.sides["decoder"]:
            x = layer.get_submodule("self")(x)
            x = layer.feed_forward(layer.source(x, source, keys))
        return self.output(self.decoder.norm(x))

    @staticmethod
    def _embedded(table: nn.Embedding, tokens: torch.Tensor) -> torch.Tensor:
        return table(tokens) + POSITION_AMPLITUDE * sinusoids(tokens.shape[1], table.embedding_dim, torch.float32)


NAMES = {"gamma": "weight", "beta": "bias"}


def load(network: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Weights by the simulator's names, whose matrices are (in, out). Raises KeyError for a weight of another name."""
    with torch.no_grad():
        own = dict(network.named_parameters())
        for name, values in weights.items():
            parent, _, last = name.rpartition(".")
            is_table = f"{name}.weight" in own
            key = f"{name}.weight" if is_table else f"{parent}.{NAMES.get(last, last)}"
            own.pop(key).copy_(values if is_table or values.dim() == 1 else values.t())
    if own:
        raise KeyError(f"no weights of {', '.join(own)}")
