"""Kinds of faults by their operation and operands."""

from __future__ import annotations

import torch

from halfscope.torch.findings.fault import OperationNote
from halfscope.torch.findings.operands import Operand
from halfscope.torch.operations.table import TABLE, Trait, named

LOGARITHMS, DIVISIONS, ROOTS = named(Trait.LOGARITHM), named(Trait.DIVIDES), named(Trait.ROOT)
SUMS, PRODUCTS = named(Trait.SUM), named(Trait.SUM_OF_PRODUCTS)

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


def kind_of(made: OperationNote, operands: list[Operand], result: torch.Tensor) -> str:
    """Kind of a fault by its operation, once its operands are known to be finite in FP32."""
    operation = made.operation
    if any(operand.infinite for operand in operands):
        return "cast"
    flushed = any(operand.flushed for operand in operands)
    if operation in LOGARITHMS:
        return "log 0"
    if operation in named(Trait.QUOTIENT) and bool(result.isnan().any()):
        return "0 / 0"
    if operation in DIVISIONS and flushed:
        return "x / 0"
    if operation in ROOTS and made.is_gradient and flushed:
        return "x / 0"
    if operation in SUMS:
        return "sum"
    if operation in PRODUCTS:
        return "sum of products"
    if operation in named(Trait.CONSTANT):
        return "constant"
    if operation in ("mul", "pow") or operation in named(Trait.ADDITION):
        if operation != "pow" and any(abs(constant.stored) == float("inf") for constant in made.constants):
            return "constant"
        is_power = operation == "pow" or made.is_square
        return "power" if is_power else ("product" if operation == "mul" else "addition")
    if operation in named(Trait.EXPONENTIAL):
        return "exponential"
    return "quotient" if operation in DIVISIONS - ROOTS else "overflow"


def terms_of(operation: str, args: tuple, exact: torch.Tensor) -> int:
    """How many terms each element of a sum has; 0 of other operations."""
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    if operation == "cumsum" and tensors:
        return int(tensors[0].shape[args[1]]) if tensors[0].dim() else 0
    if operation == "convolution" and len(tensors) > 1:
        return int(tensors[1].numel() // max(1, tensors[1].shape[0]))
    if operation in SUMS and tensors and exact.numel():
        return int(tensors[0].numel() // exact.numel())
    if operation in PRODUCTS and tensors:
        left = tensors[TABLE[operation].first or 0] if len(tensors) > 2 else tensors[0]
        return int(left.shape[-1]) if left.dim() else 0
    return 0
