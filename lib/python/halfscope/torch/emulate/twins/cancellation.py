"""Cancellation in the sums of a product: how much larger the terms are than their sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.tensors.trees import map_floats


@dataclass
class Cancellation:
    """Magnitudes over all elements of a product, all of a step's uses together."""

    operation: str
    terms: float = 0.0  # sum of the magnitudes of all terms
    sums: float = 0.0  # sum of the magnitudes of the results

    @property
    def ratio(self) -> float:
        """The sum of |terms| over that of |sum|; 1 where no sum has terms of both signs."""
        return self.terms / self.sums if self.sums else (math.inf if self.terms else 1.0)

    def add(self, terms: Any, sums: Any) -> None:
        self.terms += _magnitude(terms)
        self.sums += _magnitude(sums)


def terms_of(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The product of magnitudes: the sums of |terms|, in FP32."""
    factors = {key: abs(value) if key in ("alpha", "beta") else value for key, value in kwargs.items()}
    return func(*map_floats(args, torch.abs), **factors)


def _magnitude(value: Any) -> float:
    """The sum over all results: a convolution's backward pass has three."""
    if isinstance(value, (tuple, list)):
        return sum(map(_magnitude, value))
    return float(value.double().abs().sum()) if isinstance(value, torch.Tensor) else 0.0
