"""The translators of sim/models for PyTorch, as functions of weights that have the simulator's names and order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch.nn import functional

Weights = Mapping[str, torch.Tensor]  # a matrix is (in, out), an embedding (tokens, width)
POSITION_AMPLITUDE = 0.1
NORM_EPSILON = 1e-5
PADDING = 0


@dataclass
class Sentences:
    """A batch: tokens (batch, longest), how many of each sentence are its own, and what follows each of the target."""

    source: torch.Tensor
    target: torch.Tensor
    source_lengths: torch.Tensor
    target_lengths: torch.Tensor
    labels: torch.Tensor  # the target's own tokens, one sentence behind the other

    def hidden_keys(self) -> torch.Tensor:
        """True in the padding of (batch, source)."""
        return torch.arange(self.source.shape[1])[None] >= self.source_lengths[:, None]

    def predicting(self) -> torch.Tensor:
        """True at the target's own tokens (batch, target)."""
        return torch.arange(self.target.shape[1])[None] < self.target_lengths[:, None]


def dense(weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    return functional.linear(x, weights[f"{name}.weight"].t(), weights[f"{name}.bias"])


def sinusoids(time: int, width: int, dtype: torch.dtype) -> torch.Tensor:
    """(time, width), after Vaswani et al., NIPS 2017, section 3.5."""
    angles = torch.arange(time, dtype=torch.float64)[:, None] / 10_000 ** (
        torch.arange(0, width, 2, dtype=torch.float64) / width
    )
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1).to(dtype)


def multi_head(
    weights: Weights, name: str, heads: int, x: torch.Tensor, memory: torch.Tensor, **masks: torch.Tensor
) -> torch.Tensor:
    """PyTorch's attention of x (batch, time, width) to the memory, True in `masks` where nothing is seen."""
    biases = torch.cat([weights[f"{name}.{part}.bias"] for part in ("query", "key", "value")])
    query, key, value, output = (weights[f"{name}.{part}.weight"].t() for part in ("query", "key", "value", "output"))
    x, memory = x.transpose(0, 1), memory.transpose(0, 1)
    found, _ = functional.multi_head_attention_forward(
        x, memory, memory, x.shape[2], heads, None, biases, None, None, False, 0.0, output,
        weights[f"{name}.output.bias"], need_weights=False, use_separate_proj_weight=True,
        q_proj_weight=query, k_proj_weight=key, v_proj_weight=value, **masks,
    )  # fmt: skip
    return found.transpose(0, 1)


def layer_norm(weights: Weights, name: str, x: torch.Tensor, epsilon: float = NORM_EPSILON) -> torch.Tensor:
    gamma, beta = weights[f"{name}.gamma"], weights[f"{name}.beta"]
    return functional.layer_norm(x, gamma.shape, gamma, beta, epsilon)


@dataclass
class Transformer:
    """Pre-LN encoder and decoder; logits (labels, vocabulary)."""

    heads: int
    layers: int

    def attend(
        self, weights: Weights, name: str, x: torch.Tensor, memory: torch.Tensor | None, **masks: torch.Tensor
    ) -> torch.Tensor:
        """x + attention of the normalised x (batch, time, width) to itself, or to `memory`."""
        normal = layer_norm(weights, f"{name}.norm", x)
        return x + multi_head(weights, name, self.heads, normal, normal if memory is None else memory, **masks)

    def feed_forward(self, weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
        normal = layer_norm(weights, f"{name}.norm", x)
        return x + dense(weights, f"{name}.outer", torch.relu(dense(weights, f"{name}.inner", normal)))

    def embed(self, table: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return functional.embedding(tokens, table) + POSITION_AMPLITUDE * sinusoids(
            tokens.shape[1], table.shape[1], table.dtype
        )

    def __call__(self, weights: Weights, batch: Sentences) -> torch.Tensor:
        hidden = batch.hidden_keys()
        source = self.embed(weights["source_embedding"], batch.source)
        for layer in range(1, self.layers + 1):
            source = self.attend(weights, f"encoder{layer}.self", source, None, key_padding_mask=hidden)
            source = self.feed_forward(weights, f"encoder{layer}.feed_forward", source)
        source = layer_norm(weights, "encoder.norm", source)
        x = self.embed(weights["target_embedding"], batch.target)
        back = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for layer in range(1, self.layers + 1):
            x = self.attend(weights, f"decoder{layer}.self", x, None, attn_mask=back)
            x = self.attend(weights, f"decoder{layer}.source", x, source, key_padding_mask=hidden)
            x = self.feed_forward(weights, f"decoder{layer}.feed_forward", x)
        states = layer_norm(weights, "decoder.norm", x)[batch.predicting()]
        return dense(weights, "output", states)


@dataclass
class Seq2Seq:
    """LSTMs with Luong's general attention; logits (labels, vocabulary)."""

    layers: int

    def states(self, weights: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
        """(batch, time, hidden) of the last LSTM."""
        for layer in range(1, self.layers + 1):
            parts = ("input_weight", "hidden_weight", "input_bias", "hidden_bias")
            ours = [weights[f"{name}{layer}.{part}"] for part in parts]
            theirs = [part.t() if part.dim() == 2 else part for part in ours]
            zeros = x.new_zeros(1, len(x), len(ours[1]))
            found = torch.lstm(x, (zeros, zeros), theirs, True, 1, 0.0, False, False, True)[0]
            x = found if layer <= 2 else found + x
        return x

    def __call__(self, weights: Weights, batch: Sentences) -> torch.Tensor:
        source = self.states(weights, "encoder", functional.embedding(batch.source, weights["source_embedding"]))
        target = self.states(weights, "decoder", functional.embedding(batch.target, weights["target_embedding"]))
        scores = dense(weights, "compare", target) @ source.transpose(1, 2)
        shares = scores.masked_fill(batch.hidden_keys()[:, None], -torch.inf).softmax(2)
        both = torch.cat([shares @ source, target], dim=2)[batch.predicting()]
        return dense(weights, "output", torch.tanh(dense(weights, "combine", both)))
