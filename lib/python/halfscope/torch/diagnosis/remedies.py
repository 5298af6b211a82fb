"""Table of remedies: a fault's shape, what to write instead, and the change of the step that tries it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import halfscope
from halfscope.torch.diagnosis.fault import Fault, Made
from halfscope.torch.diagnosis.finding import called, short
from halfscope.torch.diagnosis.kinds import LOGARITHMS, QUOTIENTS
from halfscope.torch.emulation.arithmetic import Override

Trial = dict[str, Override]


@dataclass(frozen=True)
class Remedy:
    """A line of the table."""

    name: str
    fits: Callable[[Fault], bool]
    advice: Callable[[Fault], str]
    trial: Callable[[Fault], Trial]
    how: str = ""  # it is tried, where that is not the advice to the letter
    keeps_loss: bool = False  # it is none where the loss changes by it


def _wide(*rows: str) -> Trial:
    return {row: Override(is_wide=True) for row in rows}


def _of_fault(fault: Fault) -> Trial:
    return _wide(fault.made.row)


def _made_by(fault: Fault, *operations: str) -> Made | None:
    """The nearest of the operations before the fault, or the fault's own, that is one of these."""
    return next((made for made in (fault.made, *fault.sources) if made.operation in operations), None)


def _lost(fault: Fault) -> list[tuple[Made, float]]:
    return [
        (made, constant.value)
        for made in (fault.made, *fault.sources)
        for constant in made.constants
        if constant.is_lost
    ]


def _flushed_constant(fault: Fault) -> tuple[Made, float] | None:
    """A constant near the fault that the format makes zero, or that is too small to divide by."""
    largest = fault.format.largest
    for made in (fault.made, *fault.sources):
        for constant in made.constants:
            if 0 < abs(constant.value) < 1 / largest:
                return made, constant.value
    return None


def _large_constant(fault: Fault) -> tuple[Made, float] | None:
    return next(((made, value) for made, value in _lost(fault) if abs(value) > fault.format.largest), None)


def _with_constant(made: Made, old: float, new: float) -> Trial:
    """Writes another constant into an operation."""

    def replaced(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() == 0 and math.isclose(float(value), old, rel_tol=1e-6):
            return torch.full_like(value, new)
        return new if isinstance(value, float) and math.isclose(value, old, rel_tol=1e-6) else value

    def arguments(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        return tuple(map(replaced, args)), {key: replaced(value) for key, value in kwargs.items()}

    return {made.row: Override(arguments=arguments)}


def _mask(fault: Fault) -> float:
    """A power of ten that the format has, to mask with."""
    return 10.0 ** math.floor(math.log10(fault.format.largest / 2))


def _is_mask_constant(fault: Fault) -> bool:
    found = _large_constant(fault)
    return found is not None and found[0].operation in (
        "masked_fill",
        "where",
        "mul",
        "add",
        "sub",
        "rsub",
        "fill",
        "full",
    )


def _mask_advice(fault: Fault) -> str:
    made, value = _large_constant(fault) or (fault.made, 0.0)
    other = math.copysign(_mask(fault), value)
    return (
        f"write {short(other)} for {short(value)}, in {called(made.operation)}; torch.finfo(x.dtype).min will do where "
        "nothing is added to it"
    )


def _mask_trial(fault: Fault) -> Trial:
    made, value = _large_constant(fault) or (fault.made, 0.0)
    return _with_constant(made, value, math.copysign(_mask(fault), value))


def _is_mask_sum(fault: Fault) -> bool:
    limit = fault.format.largest
    return fault.kind == "addition" and any(operand.largest >= 0.9 * limit for operand in fault.operands)


def _clamped(fault: Fault) -> Trial:
    limit = fault.format.largest
    return {fault.made.row: Override(is_wide=True, result=lambda result: result.clamp(-limit, limit))}


def _is_norm(fault: Fault) -> bool:
    squares = fault.made.exponent == 2 or fault.made.is_square or fault.made.operation == "square"
    return fault.kind in ("power", "sum") and (
        squares or any(made.is_square or made.exponent == 2 for made in fault.sources)
    )


def _is_cube(fault: Fault) -> bool:
    made = fault.made
    return made.operation == "pow" or (made.operation == "mul" and any(each.exponent == 3 for each in fault.sources))


def _percent_clamped(fault: Fault) -> str:
    return f"{100 * (1 - 1 / max(fault.ratio, 1.0)):.0f}"


def _shift(fault: Fault) -> int:
    """The power of two that leaves a factor of 4 to the largest number."""
    return max(1, math.ceil(math.log2(max(fault.ratio, 1.0))) + 2)


def _shifted(fault: Fault) -> Trial:
    """The product smaller by a power of two, for good: as where a scale-invariant layer follows."""
    shift = 2.0 ** -_shift(fault)

    def arguments(args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        first = next(place for place, value in enumerate(args) if isinstance(value, torch.Tensor) and value.dim())
        return (*args[:first], args[first] * shift, *args[first + 1 :]), kwargs

    return {fault.made.row: Override(arguments=arguments)}


def _scaled(fault: Fault) -> Trial:
    """The product rounded where it is smaller by a power of two, and back in FP32: as where the factor moves ahead."""
    shift, name = 2.0 ** _shift(fault), fault.format.name

    def result(product: torch.Tensor) -> torch.Tensor:
        scaled: torch.Tensor = halfscope.round((product / shift).contiguous(), name)
        return scaled * shift

    return {fault.made.row: Override(is_wide=True, result=result)}


def _log_trial(fault: Fault) -> Trial:
    made = _made_by(fault, "_softmax", "_safe_softmax", "sigmoid")
    between = [each.row for each in fault.sources if each.operation in ("add", "mul", "clamp", "clamp_min", "maximum")]
    return _wide(*([] if made is None else [made.row]), *between, fault.made.row)


def _safe_eps(fault: Fault) -> float:
    """Above 1 / largest, for the gradient, and above the smallest number, forward: a power of ten."""
    return 10.0 ** math.ceil(math.log10(1 / fault.format.largest))


def _eps_advice(fault: Fault) -> str:
    made, value = _flushed_constant(fault) or (fault.made, 0.0)
    limit = 1 / fault.format.largest
    return (
        f"write {short(_safe_eps(fault))} for {short(value)}, in {called(made.operation)}: an eps above "
        f"{fault.format.smallest:.2g}, the "
        f"smallest number, is not 0; above {limit:.3g}, 1/{fault.format.largest:g}, the gradient 1/eps is finite too"
    )


def _eps_trial(fault: Fault) -> Trial:
    made, value = _flushed_constant(fault) or (fault.made, 0.0)
    return _with_constant(made, value, _safe_eps(fault))


def _is_score(fault: Fault) -> bool:
    """A product of two tensors of which neither is a weight, as queries and keys are."""
    products = ("bmm", "mm", "baddbmm")
    return fault.kind == "sum of products" and fault.made.operation in products and not fault.has_weight


TABLE: tuple[Remedy, ...] = (
    Remedy("mask constant", _is_mask_constant, _mask_advice, _mask_trial),
    Remedy(
        "clamped mask", _is_mask_sum,
        lambda f: "clamp the sum of mask and scores at torch.finfo(x.dtype).min, or use masked_fill behind the scores",
        _clamped,
    ),
    Remedy(
        "log_softmax", lambda f: f.made.operation in LOGARITHMS and f.kind == "log 0"
        and _made_by(f, "_softmax", "_safe_softmax") is not None,
        lambda f: "use log_softmax(x) for log(softmax(x)): it needs no eps", _log_trial,
        how=" in FP32 from the softmax to the log, as log_softmax computes it",
    ),
    Remedy(
        "logits", lambda f: f.made.operation in LOGARITHMS and _made_by(f, "sigmoid") is not None,
        lambda f: "use logsigmoid(x), or binary_cross_entropy_with_logits", _log_trial,
        how=" in FP32 from the sigmoid to the log",
    ),
    Remedy(
        "eps", lambda f: (f.made.operation in QUOTIENTS or f.kind in ("gradient", "log 0", "0 / 0", "x / 0"))
        and _flushed_constant(f) is not None,
        _eps_advice, _eps_trial,
    ),
    Remedy(
        "norm in FP32", _is_norm,
        lambda f: "square and sum in FP32: x.float().pow(2).mean(-1), cast back behind the reciprocal root; or "
        "nn.RMSNorm",
        _of_fault,
    ),
    Remedy(
        "fused activation", _is_cube,
        lambda f: "use the fused function, gelu(x, approximate='tanh') for this GELU, which is FP32 inside", _of_fault,
        how=" in FP32 from this power on",
    ),
    Remedy(
        "scaled scores", _is_score,
        lambda f: f"scale before the product: (q * s) @ k.T with s = 2^-{_shift(f)}, or the whole 1/sqrt(d), not "
        "behind it",
        _scaled,
    ),
    Remedy(
        "scaled product", lambda f: f.kind in ("product", "sum of products"),
        lambda f: f"multiply one factor by 2^-{_shift(f)}: the norm that follows does not change by it, where a "
        "clamp would "
        f"be {_percent_clamped(f)} % off",
        _shifted, keeps_loss=True,
    ),
    Remedy(
        "product in FP32", lambda f: f.kind in ("product", "sum of products"),
        lambda f: "compute this product in FP32, a.float() * b.float()" if f.kind == "product"
        else f"keep {f.made.module or 'this product'} in FP32, or make its operands smaller",
        _of_fault,
    ),
    Remedy(
        "sum in FP32", lambda f: f.kind == "sum",
        lambda f: "sum in FP32, x.sum(..., dtype=torch.float32), or take the mean, which divides before it is stored",
        _of_fault,
    ),
    Remedy(
        "input in FP32", lambda f: f.kind == "cast",
        lambda f: "scale the input down, or keep it and this operation in FP32", _of_fault,
    ),
    Remedy(
        "operation in FP32", lambda f: f.region == "forward",
        lambda f: f"compute {f.made.operation} in FP32: x.float()", _of_fault,
    ),
    Remedy(
        "gradient in FP32", lambda f: True,
        lambda f: f"compute {f.made.operation} in FP32, x.float(), so that its gradient is FP32 too", _of_fault,
    ),
)  # fmt: skip


def remedies_of(fault: Fault) -> list[Remedy]:
    """Remedies that fit, the most specific first."""
    return [remedy for remedy in TABLE if remedy.fits(fault)]
