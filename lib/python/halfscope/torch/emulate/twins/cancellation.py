"""Cancellation in the sums of a product: how much larger the terms are than their sum.

The sum over all elements of a product of magnitudes needs no product: axes of an operand that the product does not sum
over are added up first, which leaves one element, or one channel of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.tensors.magnitudes import magnitude_sums


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

    def add(self, terms: float, sums: Any) -> None:
        """sums: the product's results; a convolution's backward pass has three."""
        self.terms += terms
        self.sums += sum(map(_magnitude, sums)) if isinstance(sums, (tuple, list)) else _magnitude(sums)


def terms_of(operation: str, args: tuple, kwargs: dict[str, Any]) -> float:
    """The sum of the magnitudes of all terms of a product, an operation of the kind PRODUCT with its arguments."""
    return _TERMS[operation](*args, **{key: value for key, value in kwargs.items() if key != "out"})


def _magnitude(value: Any) -> float:
    return float(magnitude_sums(value, None)) if isinstance(value, torch.Tensor) else 0.0


def _matrices(a: torch.Tensor, b: torch.Tensor) -> float:
    """a (..., m, k) times b (..., k, n)."""
    return float((magnitude_sums(a, -2) * magnitude_sums(b, -1)).sum())


def _matrix_vector(a: torch.Tensor, b: torch.Tensor) -> float:
    return _matrices(a, b[:, None])


def _vectors(a: torch.Tensor, b: torch.Tensor) -> float:
    return _matrices(a[None], b[:, None])


def _outer(a: torch.Tensor, b: torch.Tensor) -> float:
    return _magnitude(a) * _magnitude(b)


def _added(product: Callable[..., float], shape: Callable[..., tuple[int, ...]]) -> Callable[..., float]:
    """beta * term + alpha * product; shape: of the product, to which the term is expanded."""

    def terms(term: torch.Tensor, a: torch.Tensor, b: torch.Tensor, beta: float = 1, alpha: float = 1) -> float:
        repeats = math.prod(shape(a, b)) / max(1, term.numel())
        own = abs(beta) * _magnitude(term) * repeats if beta else 0.0
        return own + abs(alpha) * product(a, b)

    return terms


def _convolution(
    images: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
) -> float:  # fmt: skip
    weight = weight.abs()
    one = weight.sum(1, keepdim=True) if transposed else _of_groups(weight, groups, 0)
    geometry = stride, padding, dilation, transposed, output_padding, groups
    result = torch.ops.aten.convolution(images.abs(), one, None, *geometry)
    elements = result[0, 0].numel() * result.shape[0]
    return _magnitude(result) + (0.0 if bias is None else _magnitude(bias) * elements)


def _convolution_backward(
    gradient: torch.Tensor, images: torch.Tensor, weight: torch.Tensor, bias_sizes: list[int] | None,
    stride: list[int], padding: list[int], dilation: list[int], transposed: bool, output_padding: list[int],
    groups: int, output_mask: list[bool],
) -> float:  # fmt: skip
    """Both products, of an image with one channel for each group: no sum runs over the channels of the images."""
    del bias_sizes
    geometry = None, stride, padding, dilation, transposed, output_padding, groups
    backward = torch.ops.aten.convolution_backward
    gradient, total = gradient.abs(), 0.0
    few = _of_groups(images.abs(), groups, 1)
    if output_mask[0]:
        of_images = _of_groups(weight.abs(), groups, 0) if transposed else weight.abs().sum(1, keepdim=True)
        total += _magnitude(backward(gradient, few, of_images, *geometry, [True, False, False])[0])
    if output_mask[1]:
        one = weight.new_zeros(groups, 1, *weight.shape[2:])
        total += _magnitude(backward(_of_groups(gradient, groups, 1), few, one, *geometry, [False, True, False])[1])
    return total + (_magnitude(gradient) if output_mask[2] else 0.0)


def _of_groups(tensor: torch.Tensor, groups: int, axis: int) -> torch.Tensor:
    """Adds up the channels of each group."""
    return tensor.unflatten(axis, (groups, -1)).sum(axis + 1)


_TERMS: dict[str, Callable[..., float]] = {
    "mm": _matrices, "bmm": _matrices, "mv": _matrix_vector, "dot": _vectors, "vdot": _vectors, "addr": _added(
        _outer, lambda a, b: (a.numel(), b.numel())
    ),
    "addmm": _added(_matrices, lambda a, b: (a.shape[0], b.shape[1])),
    "baddbmm": _added(_matrices, lambda a, b: (*a.shape[:2], b.shape[2])),
    "addbmm": _added(_matrices, lambda a, b: (a.shape[1], b.shape[2])),
    "addmv": _added(_matrix_vector, lambda a, b: (a.shape[0],)),
    "convolution": _convolution, "convolution_backward": _convolution_backward,
}  # fmt: skip
