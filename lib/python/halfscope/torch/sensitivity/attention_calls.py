"""Attention over keys and values that a cache holds in a format."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional

from halfscope.torch.sensitivity.operand_images import RIGHT
from halfscope.torch.sensitivity.product_calls import Images, Operand

attend = functional.scaled_dot_product_attention  # as it is, where another one stands in its place for a while


@dataclass(frozen=True)
class AttentionCall:
    """scaled_dot_product_attention: keys and values (..., tokens, width) have the format, in blocks along the width."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def input(self) -> torch.Tensor:
        return self.key

    @property
    def weight(self) -> torch.Tensor:
        return self.value

    def product(self, images: Images) -> torch.Tensor:
        cached = (images.image(each.detach(), RIGHT) for each in (self.key, self.value))
        return attend(self.query.detach(), *cached, **self.options)

    def operands(self) -> list[Operand]:
        return [Operand(RIGHT, self.key.detach()), Operand(RIGHT, self.value.detach())]

    def rows_first(self, result: torch.Tensor) -> torch.Tensor:
        return result

    def as_result(self, product: torch.Tensor) -> torch.Tensor:
        return product

    def plain(self) -> torch.Tensor:
        return attend(self.query, self.key, self.value, **self.options)


def read_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, **options: Any,
) -> AttentionCall | None:  # fmt: skip
    """None with dropout, whose masks two computations do not share."""
    if dropout_p:
        return None
    return AttentionCall(query, key, value, {"attn_mask": attn_mask, "is_causal": is_causal, **options})
