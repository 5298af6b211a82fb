"""Equations between the exponents of an operation's operands and result, by operation.

An operation that is not here takes its operands as they are: their exponents are zero, and so is that of its result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol

import torch

from halfscope.torch.operations.table import Kind, Operation
from halfscope.torch.rescale.exponents import UNMOVED, Exponent, plus


class Step(Protocol):
    """An operation that has run; values are its arguments, numbers among them."""

    args: tuple
    kwargs: dict[str, Any]

    def exponent(self, value: Any) -> Exponent | None: ...

    def factor(self, value: Any) -> Exponent | None:
        """The exponent of an operand that multiplies: its small numbers count."""

    def equal(self, *values: Any) -> Exponent | None:
        """The exponent that tensors share; a number among them, but zero and infinity, holds it at zero."""

    def equal_exponents(self, *exponents: Exponent | None) -> Exponent | None: ...

    def fixed(self, *values: Any) -> Exponent:
        """Takes operands as they are."""

    def half(self, exponent: Exponent | None) -> Exponent | None: ...

    def constant(self, number: float, exponent: Exponent | None) -> None:
        """A number that must have an exponent: a module's attribute can, any other one holds it at zero."""


Result = Exponent | None | list[Exponent | None]
Equation = Callable[[Step], Result]
EQUATIONS: dict[str, Equation] = {}


def _for(names: str) -> Callable[[Equation], Equation]:
    def add(equation: Equation) -> Equation:
        EQUATIONS.update(dict.fromkeys(names.split(), equation))
        return equation

    return add


def equation_of(name: str, row: Operation | None) -> Equation:
    """name: of an operation, whether the table has it or not."""
    known = EQUATIONS.get(name)
    if known is not None:
        return known
    if name.startswith(("_scaled_dot_product", "scaled_dot_product")):
        return _attention
    if row is not None and row.kind is Kind.VIEW:
        return _first
    if row is not None and row.kind is Kind.PRODUCT and row.first is not None:
        return _matrices(row.first)
    return lambda step: step.fixed(*step.args, *step.kwargs.values())


@_for(
    "relu neg abs clone _to_copy leaky_relu mean sum nansum cumsum amax amin max min aminmax median kthvalue topk sort "
    "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d avg_pool2d avg_pool3d _adaptive_avg_pool2d "
    "_adaptive_avg_pool3d std norm linalg_vector_norm index index_select gather take masked_select flip roll repeat "
    "tril triu pixel_shuffle pixel_unshuffle channel_shuffle im2col upsample_nearest1d upsample_nearest2d "
    "upsample_bilinear2d upsample_bicubic2d upsample_linear1d reflection_pad1d reflection_pad2d replication_pad1d "
    "replication_pad2d _unsafe_index contiguous alias zero native_dropout _pack_padded_sequence trace"
)
def _first(step: Step) -> Result:
    """A power of two of the operand is one of the result."""
    exponent = step.exponent(step.args[0])
    return [exponent, exponent]


@_for("argmax argmin argsort isnan isinf isfinite sgn sign nonzero zeros_like empty_like ones_like full_like rand_like")
@_for("new_zeros new_ones new_full new_empty new_empty_strided randn_like bernoulli is_same_size sym_size size")
def _of_no_exponent(step: Step) -> Result:
    """The result has no power of two of the operand's."""
    del step
    return UNMOVED


@_for("copy")
def _copied(step: Step) -> Result:
    return step.exponent(step.args[1])


@_for("add sub rsub maximum minimum lerp")
def _added(step: Step) -> Result:
    first, second = step.args[:2]
    if isinstance(second, (int, float)) and second and math.isfinite(second):
        step.constant(second, step.exponent(first))
        return step.exponent(first)
    return step.equal(first, second)


@_for("cat stack")
def _joined(step: Step) -> Result:
    return step.equal(*step.args[0])


@_for("eq ne lt le gt ge where clamp clamp_min clamp_max constant_pad_nd masked_fill fill index_fill equal hardtanh")
def _compared(step: Step) -> Result:
    """Floating-point operands beside each other; integers among the other arguments are places or sizes."""
    return step.equal(*(value for value in step.args if isinstance(value, (torch.Tensor, float))),
                      *(value for value in step.kwargs.values() if isinstance(value, float)),
                      *(value for value in step.args[1:3] if type(value) is int))  # fmt: skip


@_for("index_put _unsafe_index_put index_add scatter_add scatter select_scatter slice_scatter masked_scatter")
def _written(step: Step) -> Result:
    return step.equal(*(value for value in step.args if isinstance(value, torch.Tensor)))


@_for("mul")
def _multiplied(step: Step) -> Result:
    return plus(step.factor(step.args[0]), step.factor(step.args[1]))


@_for("div")
def _divided(step: Step) -> Result:
    if step.kwargs.get("rounding_mode") is not None:
        return step.fixed(*step.args)
    return plus(step.exponent(step.args[0]), step.factor(step.args[1]), -1)


@_for("addcmul")
def _added_product(step: Step) -> Result:
    return step.equal_exponents(step.exponent(step.args[0]), plus(step.factor(step.args[1]), step.factor(step.args[2])))


@_for("pow")
def _power(step: Step) -> Result:
    base, power = step.args[:2]
    if not isinstance(base, torch.Tensor) or isinstance(power, torch.Tensor):
        return step.fixed(base, power)
    if float(2 * power).is_integer():
        doubled = plus(UNMOVED, step.exponent(base), round(2 * power))
        return step.half(doubled)
    return step.fixed(base)


@_for("square var")
def _square(step: Step) -> Result:
    return plus(UNMOVED, step.exponent(step.args[0]), 2)


@_for("sqrt")
def _root(step: Step) -> Result:
    return step.half(step.exponent(step.args[0]))


@_for("rsqrt")
def _inverse_root(step: Step) -> Result:
    return plus(UNMOVED, step.half(step.exponent(step.args[0])), -1)


@_for("reciprocal")
def _inverse(step: Step) -> Result:
    return plus(UNMOVED, step.exponent(step.args[0]), -1)


@_for("embedding")
def _rows(step: Step) -> Result:
    return step.factor(step.args[0])


@_for("linear convolution _convolution mkldnn_convolution")
def _linear(step: Step) -> Result:
    operands = (*step.args, step.kwargs.get("bias"))[:3]
    product = plus(step.factor(operands[0]), step.factor(operands[1]))
    bias = operands[2] if len(operands) > 2 else None
    return product if bias is None else step.equal_exponents(product, step.exponent(bias))


def _matrices(first: int) -> Equation:
    """A product of matrices whose left factor is the argument `first`, behind what is added to it."""

    def equation(step: Step) -> Result:
        product = plus(step.factor(step.args[first]), step.factor(step.args[first + 1]))
        return step.equal_exponents(product, step.exponent(step.args[0])) if first else product

    return equation


def _attention(step: Step) -> Result:
    """A softmax takes the scores as they are; values go through."""
    query, key, value = step.args[:3]
    step.equal_exponents(UNMOVED, plus(step.exponent(query), step.exponent(key)))
    step.fixed(*(each for each in (*step.args[3:], *step.kwargs.values()) if isinstance(each, torch.Tensor)))
    return [step.exponent(value), UNMOVED]


def _gained(step: Step, weight: Any, bias: Any) -> Exponent | None:
    """Result of a norm: that of its gain and of what it adds."""
    gain = UNMOVED if weight is None else step.factor(weight)
    return gain if bias is None else step.equal_exponents(gain, step.exponent(bias))


@_for("_softmax _safe_softmax _log_softmax")
def _softmax(step: Step) -> Result:
    return step.fixed(step.args[0])


@_for("native_layer_norm")
def _layer_norm(step: Step) -> Result:
    given, _, weight, bias, epsilon = step.args[:5]
    return _norm(step, given, weight, bias, epsilon)


@_for("native_group_norm")
def _group_norm(step: Step) -> Result:
    return _norm(step, step.args[0], step.args[1], step.args[2], step.args[7])


@_for("_fused_rms_norm")
def _rms_norm(step: Step) -> Result:
    epsilon = step.args[3] if len(step.args) > 3 else None
    out, _, scale = _norm(step, step.args[0], step.args[2], None, _default(epsilon))
    return [out, scale]


def _norm(step: Step, given: Any, weight: Any, bias: Any, epsilon: float) -> list[Exponent | None]:
    exponent = step.exponent(given)
    step.constant(epsilon, plus(UNMOVED, exponent, 2))
    return [_gained(step, weight, bias), exponent, plus(UNMOVED, exponent, -1)]


def _default(epsilon: float | None) -> float:
    return torch.finfo(torch.float32).eps if epsilon is None else epsilon


@_for("native_batch_norm _native_batch_norm_legit _native_batch_norm_legit_no_training")
def _batch_norm(step: Step) -> Result:
    """Stored statistics have exponents of their own: the variance an even one, with epsilon's."""
    given, weight, bias, mean, variance = step.args[:5]
    exponent = step.exponent(given)
    epsilon = next(value for value in reversed(step.args) if type(value) is float)
    if mean is None or variance is None or step.args[5] is True:
        return _norm(step, given, weight, bias, epsilon)
    step.equal_exponents(exponent, step.exponent(mean))
    step.constant(epsilon, step.exponent(variance))
    scale = step.half(step.exponent(variance))
    product = plus(plus(exponent, scale, -1), UNMOVED if weight is None else step.factor(weight))
    if bias is not None:
        product = step.equal_exponents(product, step.exponent(bias))
    return [product, exponent, plus(UNMOVED, scale, -1)]
