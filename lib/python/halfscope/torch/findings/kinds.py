"""Kinds of faults by their operation and operands."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.findings.fault import Made
from halfscope.torch.findings.operands import Operand

LOGARITHMS = ("log", "log2", "log10", "logit")
QUOTIENTS = ("div", "reciprocal", "rsqrt", "addcdiv")
SUMS = ("sum", "mean", "nansum", "cumsum", "logsumexp", "norm", "linalg_vector_norm")
EXPONENTIALS = ("exp", "exp2", "expm1", "sinh", "cosh")
PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "convolution", "mv", "dot", "addmv", "addbmm")
SOFTMAXES = ("_softmax", "_safe_softmax")
CONSTANTS = ("masked_fill", "where", "fill", "full", "index_fill")

WORDS = {
    "cast": "a cast overflows",
    "log 0": "log of 0",
    "0 / 0": "0 / 0",
    "x / 0": "a division by 0",
    "sum": "a sum overflows",
    "sum of products": "a sum of products overflows",
    "constant": "a constant overflows",
    "addition": "an addition overflows",
    "product": "a product overflows",
    "power": "a power overflows",
    "gradient": "a gradient overflows",
    "exponential": "an exponential overflows",
    "quotient": "a quotient overflows",
    "overflow": "the result overflows",
}


def kind_of(made: Made, operands: list[Operand], result: torch.Tensor) -> str:
    """By the operation, once its operands are known to be finite in FP32."""
    operation = made.operation
    if any(operand.infinite for operand in operands):
        return "cast"
    flushed = any(operand.flushed for operand in operands)
    if operation in LOGARITHMS:
        return "log 0"
    if operation in ("div", "addcdiv") and bool(result.isnan().any()):
        return "0 / 0"
    if operation in QUOTIENTS and flushed:
        return "x / 0"
    if operation == "sqrt" and made.is_gradient and flushed:
        return "x / 0"
    if operation in SUMS:
        return "sum"
    if operation in PRODUCTS:
        return "sum of products"
    if operation in CONSTANTS:
        return "constant"
    if operation in ("mul", "pow", "add", "sub", "rsub"):
        if operation != "pow" and any(abs(constant.stored) == float("inf") for constant in made.constants):
            return "constant"
        is_power = operation == "pow" or made.is_square
        return "power" if is_power else ("product" if operation == "mul" else "addition")
    if operation in EXPONENTIALS:
        return "exponential"
    return "quotient" if operation in ("div", "reciprocal", "addcdiv") else "overflow"


def terms_of(ran: Any, exact: torch.Tensor) -> int:
    """How many terms each element of a sum has; 0 of other operations."""
    tensors = [value for value in ran.args if isinstance(value, torch.Tensor)]
    if ran.operation == "cumsum" and tensors:
        return int(tensors[0].shape[ran.args[1]]) if tensors[0].dim() else 0
    if ran.operation == "convolution" and len(tensors) > 1:
        return int(tensors[1].numel() // max(1, tensors[1].shape[0]))
    if ran.operation in SUMS and tensors and exact.numel():
        return int(tensors[0].numel() // exact.numel())
    if ran.operation in PRODUCTS and tensors:
        left = tensors[1] if ran.operation.startswith(("add", "baddbmm")) and len(tensors) > 2 else tensors[0]
        return int(left.shape[-1]) if left.dim() else 0
    return 0
