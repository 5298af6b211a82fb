"""Attention as tiled kernels compute it: the probabilities are rounded before their product with the values.

Scores, exponentials and row sums are FP32. P = exp(score - largest of the row), times a scale, is rounded to the
activations' format for the second product, and the result is divided by the unrounded row sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.emulate.arithmetic.products import product

Round = Callable[[torch.Tensor, str], torch.Tensor]  # rounds a copy, under a name behind the module's


@dataclass(frozen=True)
class TiledAttention:
    """model: of the products; scale: of P, a power of two, so that less of it underflows; both roundings copy."""

    model: str
    round_probabilities: Round
    round_gradient: Round
    scale: float = 1.0

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, dropout_p: float = 0.0,
        is_causal: bool = False, *, attn_mask: torch.Tensor | None = None, scale: float | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        """(..., rows, value size), unrounded, and the logarithm of the row sums (..., rows)."""
        if dropout_p:
            raise ValueError("emulate: tiled attention has no dropout; give attention='math', or dropout_p=0")
        key, value = _for_each_query(key, query), _for_each_query(value, query)
        scores = self._scores(query, key, is_causal, attn_mask, scale)
        largest = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(torch.float32).min)
        exponentials = (scores - largest).exp()
        sums = exponentials.sum(-1, keepdim=True)
        probabilities = self.round_probabilities(exponentials * self.scale, "probabilities")
        output = product(probabilities, value, self.model) / (sums * self.scale)
        return output, (largest + sums.log()).squeeze(-1)

    def backward(
        self, gradient: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
        output: torch.Tensor, logarithms: torch.Tensor, dropout_p: float, is_causal: bool, *,
        attn_mask: torch.Tensor | None = None, scale: float | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
        """Gradients of query, key and value, unrounded; P is computed anew and divided before it is rounded."""
        del dropout_p
        heads = key.shape[-3]
        key, value = _for_each_query(key, query), _for_each_query(value, query)
        factor = _factor(query, scale)
        scores = self._scores(query, key, is_causal, attn_mask, scale)
        exact = (scores - logarithms.unsqueeze(-1)).exp()
        probabilities = self.round_probabilities(exact * self.scale, "probabilities")
        of_value = product(probabilities.transpose(-1, -2), gradient, self.model) / self.scale
        of_probabilities = product(gradient, value.transpose(-1, -2), self.model)
        of_scores = exact * (of_probabilities - (gradient * output).sum(-1, keepdim=True))
        of_scores = self.round_gradient(of_scores, "scores")
        of_query = product(of_scores, key, self.model) * factor
        of_key = product(of_scores.transpose(-1, -2), query, self.model) * factor
        return of_query, _of_groups(of_key, heads), _of_groups(of_value, heads)

    def _scores(
        self, query: torch.Tensor, key: torch.Tensor, is_causal: bool, mask: torch.Tensor | None, scale: float | None
    ) -> torch.Tensor:
        scores = product(query, key.transpose(-1, -2), self.model) * _factor(query, scale)
        if is_causal:
            rows, columns = scores.shape[-2:]
            allowed = torch.ones(rows, columns, dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~allowed, -math.inf)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype is torch.bool else scores + mask
        return scores


def _for_each_query(tensor: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Keys or values (batch, head, row, size) that groups of query heads share, once for each of these."""
    times = query.shape[-3] // tensor.shape[-3]
    return tensor if times == 1 else tensor.repeat_interleave(times, -3)


def _of_groups(gradient: torch.Tensor, heads: int) -> torch.Tensor:
    """Gradients of shared heads: the sum over the query heads that share each."""
    if gradient.shape[-3] == heads:
        return gradient
    return gradient.unflatten(-3, (heads, -1)).sum(-3)


def _factor(query: torch.Tensor, scale: float | None) -> float:
    return query.shape[-1] ** -0.5 if scale is None else scale


@dataclass(frozen=True)
class Way:
    """The way in which scaled_dot_product_attention is computed.

    kind: "fused" as GPU kernels compute it, tiled with the CPU's fused kernel, else in FP32 between operands and
    result; "tiled" alone; or "math", separate operations, each rounded. scale: of the probabilities.
    """

    kind: str
    scale: float = 1.0

    @property
    def has_kernel(self) -> bool:
        """Whether the CPU's fused kernel is used, which the emulation computes as a whole."""
        return self.kind != "math"

    @property
    def has_operations(self) -> bool:
        """Whether it may be computed by separate operations."""
        return self.kind != "tiled"


def parse_attention(text: Any) -> Way:
    """Reads "fused", "math", "tiled" or "tiled(256)"; raises ValueError for others."""
    if text in ("fused", "math"):
        return Way(text)
    if isinstance(text, str) and text.startswith("tiled"):
        inside = text[len("tiled") :] or "(1)"
        try:
            scale = float(inside[1:-1])
        except ValueError:
            scale = 0.0
        if inside[0] + inside[-1] == "()" and scale > 0 and math.frexp(scale)[0] == 0.5:
            return Way("tiled", scale)
    raise ValueError(f"emulate: attention={text!r}; give 'fused', 'math', 'tiled', or 'tiled(S)' with S a power of two")
