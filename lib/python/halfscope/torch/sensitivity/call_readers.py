"""Functions of PyTorch that multiply an input by a weight, and their arguments as a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from halfscope.torch.sensitivity.attention_calls import read_attention
from halfscope.torch.sensitivity.product_calls import ConvolutionCall, EmbeddingCall, LinearCall, ProductCall


def _linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> ProductCall:
    return LinearCall(input, weight, bias)


def _matmul(input: torch.Tensor, weight: torch.Tensor) -> ProductCall | None:
    """A product of matrices whose right factor is the weight (in, out)."""
    fits = weight.dim() == 2 and input.dim() > 1
    return LinearCall(input, weight.t()) if fits else None


def _addmm(
    input: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> ProductCall | None:
    return LinearCall(mat1, mat2.t(), input) if beta == alpha == 1 else None


def _embedding(
    input: torch.Tensor,
    weight: torch.Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    *_: Any,
    **__: Any,
) -> ProductCall | None:
    del padding_idx
    return EmbeddingCall(input, weight) if max_norm is None else None


def _convolution(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> ProductCall | None:  # fmt: skip
    axes = weight.dim() - 2
    stride, dilation = _each(stride, axes), _each(dilation, axes)
    reach = [spread * (taps - 1) for spread, taps in zip(dilation, weight.shape[2:])]
    if padding == "same" and all(size % 2 == 0 for size in reach):
        padding = [size // 2 for size in reach]
    padding = 0 if padding == "valid" else padding
    if input.dim() != weight.dim() or isinstance(padding, str):
        return None
    return ConvolutionCall(input, weight, bias, stride, _each(padding, axes), dilation, groups)


def _each(values: Any, axes: int) -> tuple[int, ...]:
    given = (values,) if isinstance(values, int) else tuple(values)
    return given * axes if len(given) == 1 else given


READERS: dict[Any, Callable[..., ProductCall | None]] = {
    functional.linear: _linear, functional.embedding: _embedding, torch.addmm: _addmm,
    functional.scaled_dot_product_attention: read_attention,
    **dict.fromkeys((functional.conv1d, functional.conv2d, functional.conv3d), _convolution),
    **dict.fromkeys(
        (torch.matmul, torch.mm, torch.Tensor.matmul, torch.Tensor.mm, torch.Tensor.__matmul__), _matmul
    ),
}  # fmt: skip


def read_call(func: Any, args: tuple, kwargs: dict[str, Any]) -> ProductCall | None:
    """The call of a function; None for one that is no product, or of a form that has no format."""
    reader = READERS.get(func)
    return None if reader is None else reader(*args, **kwargs)
