"""Operations on tensors of 16 bits that are not PyTorch's FP32 operation rounded once, as GPUs compute them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# A rule takes the type of the result, then operands widened to FP32; it returns an FP32 tensor that it has made.
Rule = Callable[..., torch.Tensor]


def rule_of(operation: str) -> Rule | None:
    """Rule of an operation by its name in the table, whether in place or not."""
    return _RULES.get(operation)


def _narrow(tensor: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Rounded to a type, in FP32 again."""
    return tensor.to(kind).float()


def _rounded_scalar(value: Any, kind: torch.dtype) -> Any:
    """GPU loops that take a scalar in the tensor's type: remainders and powers. Others take it in FP32."""
    return value if isinstance(value, torch.Tensor) else float(torch.tensor(float(value)).to(kind))


def _sqrt(kind: torch.dtype, x: torch.Tensor) -> torch.Tensor:
    """PyTorch's FP32 square root is an ulp off on some CPUs."""
    del kind
    return x.double().sqrt().float()


def _remainder(function: Callable) -> Rule:
    """PyTorch's FP32 loop for CPUs makes NaNs of large quotients."""

    def compute(kind: torch.dtype, a: Any, b: Any) -> torch.Tensor:
        a, b = (_rounded_scalar(value, kind) for value in (a, b))
        wide = [value.double() if isinstance(value, torch.Tensor) else value for value in (a, b)]
        result: torch.Tensor = function(*wide)
        return result.float()

    return compute


def _pow(kind: torch.dtype, base: Any, exponent: Any) -> torch.Tensor:
    """Small whole powers multiply, and round each product."""
    base, exponent = (_rounded_scalar(value, kind) for value in (base, exponent))
    if not isinstance(exponent, torch.Tensor) and exponent in (3, -2):
        squares = _narrow(base * base, kind)
        return squares * base if exponent == 3 else 1 / squares
    result: torch.Tensor = torch.pow(base, exponent)
    return result


def _nan_to_num(kind: torch.dtype, x: torch.Tensor, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    limit = torch.finfo(kind).max
    return torch.nan_to_num(x, nan, limit if posinf is None else posinf, -limit if neginf is None else neginf)


def _logsumexp(kind: torch.dtype, x: torch.Tensor, axes: list[int], keepdim: bool = False) -> torch.Tensor:
    """PyTorch composes it of operations that each round."""
    largest = x.amax(axes, keepdim=True)
    largest = torch.where(largest.abs() == float("inf"), torch.zeros_like(largest), largest)
    total = _narrow(_narrow(_narrow(x - largest, kind).exp(), kind).sum(axes, keepdim=keepdim), kind)
    return _narrow(total.log(), kind) + (largest if keepdim else largest.sum(axes))


_RULES: dict[str, Rule] = {
    "sqrt": _sqrt, "fmod": _remainder(torch.fmod), "remainder": _remainder(torch.remainder), "pow": _pow,
    "nan_to_num": _nan_to_num, "logsumexp": _logsumexp,
}  # fmt: skip
