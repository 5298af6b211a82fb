"""BERT and DistilBERT's loss for PyTorch, as functions of weights that have the simulator's names and order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

from torch_translation_networks import Weights, dense, layer_norm, multi_head

NORM_EPSILON = 1e-12


@dataclass
class Verses:
    """A batch: tokens and segments (batch, time), and how many tokens of each are its own."""

    tokens: torch.Tensor
    segments: torch.Tensor
    lengths: torch.Tensor


@dataclass
class Bert:
    """Post-LN encoder with the embeddings, the pooler and the heads of Devlin et al., NAACL 2019."""

    heads: int
    layers: int

    def states(self, weights: Weights, batch: Verses) -> torch.Tensor:
        """(batch, time, width)."""
        x = functional.embedding(batch.tokens, weights["embeddings.words"])
        x = x + weights["embeddings.positions"][: batch.tokens.shape[1]]
        if "embeddings.segments" in weights:  # DistilBERT has none
            x = x + functional.embedding(batch.segments, weights["embeddings.segments"])
        x = layer_norm(weights, "embeddings.norm", x, NORM_EPSILON)
        hidden = torch.arange(batch.tokens.shape[1])[None] >= batch.lengths[:, None]
        for layer in range(1, self.layers + 1):
            self_attention, network = f"encoder{layer}.self", f"encoder{layer}.feed_forward"
            found = multi_head(weights, self_attention, self.heads, x, x, key_padding_mask=hidden)
            x = layer_norm(weights, f"{self_attention}.norm", x + found, NORM_EPSILON)
            found = functional.gelu(dense(weights, f"{network}.inner", x))
            x = layer_norm(weights, f"{network}.norm", x + dense(weights, f"{network}.outer", found), NORM_EPSILON)
        return x

    def pooled(self, weights: Weights, states: torch.Tensor) -> torch.Tensor:
        return torch.tanh(dense(weights, "pooler", states[:, 0]))

    def word_logits(self, weights: Weights, states: torch.Tensor, masked: torch.Tensor) -> torch.Tensor:
        """(masked, vocabulary), of the places `masked` in (batch, time)."""
        x = functional.gelu(dense(weights, "masked_words.dense", states.flatten(0, 1)[masked]))
        x = layer_norm(weights, "masked_words.norm", x, NORM_EPSILON)
        return functional.linear(x, weights["embeddings.words"], weights["masked_words.bias"])


@dataclass
class Masked:
    """A masked language model's outputs: logits (masked, vocabulary) and states (tokens, width) but of padding."""

    logits: torch.Tensor
    states: torch.Tensor


def masked(bert: Bert, weights: Weights, batch: Verses, places: torch.Tensor) -> Masked:
    states = bert.states(weights, batch)
    shown = torch.arange(batch.tokens.shape[1])[None] < batch.lengths[:, None]
    return Masked(bert.word_logits(weights, states, places), states[shown])


def distillation_loss(student: Masked, teacher: Masked, labels: torch.Tensor) -> torch.Tensor:
    """The three parts of Sanh et al., 2019, with the weights of their program."""
    soft = functional.kl_div(
        functional.log_softmax(student.logits / 2, -1),
        functional.softmax(teacher.logits / 2, -1),
        reduction="batchmean",
    )
    ones = torch.ones(len(student.states), dtype=student.states.dtype)
    cosine = functional.cosine_embedding_loss(student.states, teacher.states, ones)
    return 5 * 4 * soft + 2 * functional.cross_entropy(student.logits, labels) + cosine
