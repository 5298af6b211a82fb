"""Matrix products and convolutions in a named order of their sums: float32 operands that are rounded already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from halfscope.torch.device.arithmetic import device_of
from halfscope.torch.emulate.arithmetic import convolutions
from halfscope.torch.emulate.arithmetic.product_operands import See
from halfscope.torch.split_sums import SplitSum, split_of, unsplit


def product(a: torch.Tensor, b: torch.Tensor, model: str) -> torch.Tensor:
    """a (..., m, k) times b (..., k, n), with equal leading axes."""
    split = split_of(model)
    if split is not None:
        return _split_product(a, b, split)
    device = device_of(a)
    return device.away(device.matmul(a.detach(), b.detach(), model), a)


def _split_product(a: torch.Tensor, b: torch.Tensor, split: SplitSum) -> torch.Tensor:
    total = a.new_zeros(*a.shape[:-1], b.shape[-1])
    for first, end in split.ranges(a.shape[-1]):
        part = product(a[..., first:end], b[..., first:end, :], str(split.inner))
        total += device_of(part).round(part, split.format)
    return total


def _add(term: torch.Tensor, total: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
    """beta * term + alpha * total, in FP32; a beta of zero takes nothing of the term, not even its NaNs."""
    alpha, beta = options.get("alpha", 1), options.get("beta", 1)
    total = total if alpha == 1 else total * alpha
    if beta == 0:
        return total.expand(torch.broadcast_shapes(term.shape, total.shape)).contiguous()
    return total + (term if beta == 1 else term * beta)


def _mm(model: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a, b, model)


def _mv(model: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a, b[:, None], model)[:, 0]


def _dot(model: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return product(a[None], b[:, None], model)[0, 0]


def _addmm(model: str, term: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **options: Any) -> torch.Tensor:
    return _add(term, product(a, b, model), options)


def _addmv(model: str, term: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **options: Any) -> torch.Tensor:
    return _add(term, _mv(model, a, b), options)


def _addr(model: str, term: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **options: Any) -> torch.Tensor:
    return _add(term, product(a[:, None], b[None], model), options)


def _addbmm(model: str, term: torch.Tensor, a: torch.Tensor, b: torch.Tensor, **options: Any) -> torch.Tensor:
    """One sum over the batch and the inner axis, batch by batch."""
    rows = a.transpose(0, 1).reshape(a.shape[1], -1)
    return _add(term, product(rows, b.reshape(-1, b.shape[2]), model), options)


_PRODUCTS: dict[str, Callable[..., Any]] = {
    "mm": _mm, "bmm": _mm, "mv": _mv, "dot": _dot, "vdot": _dot, "addmm": _addmm, "baddbmm": _addmm, "addmv": _addmv,
    "addbmm": _addbmm, "addr": _addr, "convolution": convolutions.forward,
    "convolution_backward": convolutions.backward,
}  # fmt: skip


def compute(operation: str, sums: tuple[str, See | None], arguments: tuple, options: dict[str, Any]) -> Any:
    """The operation's result, unrounded; options as PyTorch's operator has them, without `out`.

    sums: their order, and how the product of a convolution sees its operands; None: as they are.
    """
    model, see = sums
    if operation.startswith("convolution"):
        return _PRODUCTS[operation](convolutions.Product(unsplit(model), see), *arguments, **options)
    return _PRODUCTS[operation](model, *arguments, **options)
