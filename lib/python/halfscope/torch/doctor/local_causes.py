"""Effect of the format on one call: the same call in FP32 on the same operands."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.formats import Format
from halfscope.torch.doctor.call_names import VIEWS, is_in_place
from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.nested_tensors import floats_in
from halfscope.torch.doctor.source_text import CallPlace
from halfscope.torch.doctor.transformations.constants import short
from halfscope.torch.doctor.transformations.patterns import number_of, plain_name

_CANCELS = 30.0  # times larger operands than their difference
_LOST = 0.1  # share of the smaller addend
_UNREPEATABLE = (
    "batch_norm",
    "dropout",
    "rand",
    "bernoulli",
    "normal",
    "instance_norm",
    "checkpoint",
    "lstm",
    "gru",
    "rnn",
)
_DOMAINS = {
    "log": ("logarithm", lambda x: x <= 0), "log2": ("logarithm", lambda x: x <= 0), "sqrt": ("root", lambda x: x < 0),
    "rsqrt": ("reciprocal root", lambda x: x <= 0), "log1p": ("log1p", lambda x: x <= -1),
    "acos": ("acos", lambda x: x.abs() > 1), "atanh": ("atanh", lambda x: x.abs() >= 1),
    "asin": ("asin", lambda x: x.abs() > 1), "log10": ("logarithm", lambda x: x <= 0),
    "reciprocal": ("reciprocal", lambda x: x == 0),
}  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """kind: overflow, domain, flushed, lost addend, cancellation, constant."""

    kind: str
    call: Call
    words: str


def causes_of(calls: list[Call], format: Format) -> list[Cause]:
    """First cause of each kind at each place; the most harmful come first."""
    found: dict[tuple[CallPlace, str], Cause] = {}
    for call in calls:
        for cause in _causes(call, format):
            found.setdefault((call.place, cause.kind), cause)
    order = ("overflow", "domain", "constant", "flushed", "cancellation", "lost addend")
    return sorted(found.values(), key=lambda cause: order.index(cause.kind))


def _causes(call: Call, format: Format) -> list[Cause]:
    exact = _repeated(call)
    narrow = [tensor.detach() for tensor in floats_in(call.result)]
    found = [
        Cause(
            "constant",
            call,
            f"the constant {short(value)} in {call.place.called} is {_as_held(value, format)} in {format.label}",
        )
        for value in constants_of(call)
        if _as_held(value, format) and (exact is None or _is_used(value, exact, narrow, format))
    ]
    if exact is None:
        return found
    for wide, held in zip(exact, narrow):
        if wide.shape == held.shape and wide.numel():
            found += _of_result(call, wide, held, format)
    return found


def constants_of(call: Call) -> list[float]:
    values = [number_of(value) for value in (*call.args, *call.kwargs.values()) if not isinstance(value, torch.Tensor)]
    return [value for value in values if (value is not None and math.isfinite(value) and value != int(value))
            or (value is not None and math.isfinite(value) and abs(value) > 1e4)]  # fmt: skip


def _as_held(value: float, format: Format) -> str:
    """The number that the format has for a constant; empty where it is near enough."""
    held = format.round(value)
    if math.isinf(held):
        return "inf" if held > 0 else "-inf"
    if held == 0 and value:
        return "0"
    return "1" if abs(held) == 1 and abs(value) < 1 else ""


def _repeated(call: Call) -> list[torch.Tensor] | None:
    """Results in FP32 on the operands as they are; None of a call that cannot be made again."""
    if is_in_place(call) or call.name in VIEWS or any(word in call.name for word in _UNREPEATABLE):
        return None
    try:
        with torch.no_grad():
            return floats_in(call.func(*_detached(call.args), **_detached(call.kwargs)))
    except Exception:  # an operand of another shape by now
        return None


def _is_used(value: float, exact: list[torch.Tensor], held: list[torch.Tensor], format: Format) -> bool:
    """Whether a constant beyond the range is in a result: factors and divisors are FP32 in a kernel."""
    if math.isfinite(format.round(value)):
        return True
    pairs = [(one, other) for one, other in zip(exact, held) if one.shape == other.shape]
    near = [(one.abs() > 0.9 * abs(value)) & (one.abs() < 1.1 * abs(value)) & ~other.isfinite() for one, other in pairs]
    return any(bool(each.any()) for each in near)


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _detached(part) for key, part in value.items()}
    return type(value)(map(_detached, value)) if type(value) in (tuple, list) else value


def _of_result(call: Call, exact: torch.Tensor, held: torch.Tensor, format: Format) -> list[Cause]:
    text, finite = call.place.called, exact.isfinite()
    if bool((finite & ~held.isfinite()).any()):
        size = float(exact[finite].abs().max())
        ratio = size / format.largest
        times = f"{ratio:{'.2g' if ratio > 1.05 else '.4g'}} times {format.label}'s largest number {format.largest:g}"
        return [Cause("overflow", call, f"{text} overflows: {size:.5g}, {times}")]
    operands = [tensor.detach() for tensor in floats_in((call.args, call.kwargs))]
    outside = _domain(call, operands)
    if outside:
        return [Cause("domain", call, f"{text} is not finite: {outside}")]
    flushed = int(((exact != 0) & (held == 0)).sum())
    if flushed:
        return [
            Cause(
                "flushed",
                call,
                f"{text} is 0 for {flushed} of {held.numel()} elements that {format.label} does not hold",
            )
        ]
    return _of_sum(call, exact, held, operands)


def _domain(call: Call, operands: list[torch.Tensor]) -> str:
    name = plain_name(call)
    if name in _DOMAINS and operands:
        word, is_outside = _DOMAINS[name]
        count = int(is_outside(operands[0]).sum())
        least = float(operands[0].min()) if operands[0].numel() else 0.0
        return (
            f"{word} of {'0' if least == 0 else format(least, '.3g')} ({count} of {operands[0].numel()} elements)"
            if count
            else ""
        )
    divisor = (
        operands[0] if name == "rdiv" and operands else operands[1] if name == "div" and len(operands) > 1 else None
    )
    if divisor is not None and bool((divisor == 0).any()):
        return f"a division by 0 ({int((divisor == 0).sum())} of {divisor.numel()} elements)"
    return ""


def _of_sum(call: Call, exact: torch.Tensor, held: torch.Tensor, operands: list[torch.Tensor]) -> list[Cause]:
    name = plain_name(call)
    if name not in ("add", "sub", "rsub") or not bool(held.isfinite().all()):
        return []
    numbers = [abs(value) for value in map(number_of, call.args[1:2]) if value is not None]
    sizes = [float(operand.abs().max()) for operand in operands if operand.numel()] + numbers
    if len(sizes) < 2 or not all(map(math.isfinite, sizes)) or not min(sizes):
        return []
    result = float(exact.abs().max())
    if max(sizes) > _CANCELS * result:
        left = f"few digits are left of {result:.2g}" if result else "no digit is left"
        words = f"is the difference of numbers near {max(sizes):.4g}: {left}"
        return [Cause("cancellation", call, f"{call.place.called} {words}")]
    error = float((held - exact).abs().max())
    if error > _LOST * min(sizes):
        return [
            Cause("lost addend", call, f"{call.place.called} loses up to {error:.2g} of an addend of {min(sizes):.2g}")
        ]
    return []
