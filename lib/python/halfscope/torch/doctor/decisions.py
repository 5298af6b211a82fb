"""Decisions within a step: integers and booleans that calls make of floating numbers, with what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.nested_tensors import tensors_in

# Booleans that tell numbers from what is none decide nothing.
_NO_DECISIONS = ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "isclose")
_COMPARED_NAMES = "gt lt ge le eq ne __gt__ __lt__ __ge__ __le__ __eq__ __ne__ greater less greater_equal less_equal"
COMPARISONS = frozenset(_COMPARED_NAMES.split())
WHOLE_ORDERS = ("sort", "argsort", "msort")
SMALLEST, LARGEST = ("argmin", "min"), ("argmax", "max", "topk")
ORDERS = frozenset((*WHOLE_ORDERS, *SMALLEST, *LARGEST))
TO_WHOLE = frozenset(("floor", "ceil", "round", "trunc", "fix", "floor_divide", "__floordiv__", "__rfloordiv__"))
_MOST_ELEMENTS = 2**16  # kept of a decision, at equal distances


@dataclass(frozen=True)
class Decision:
    """made: integers or booleans. numbers: differences that are compared, numbers that are put in order, or codes."""

    made: torch.Tensor
    numbers: torch.Tensor
    is_code: bool  # numbers become integers, which are 1 apart

    def changed(self, exact: Decision) -> int:
        if self.made.shape != exact.made.shape:
            return exact.made.numel()
        return int((self.made != exact.made).sum())

    def lost(self, exact: Decision) -> float:
        """Error of the numbers over their size, or over 1 for codes of more."""
        if self.numbers.shape != exact.numbers.shape:
            return 1.0
        fine = self.numbers.isfinite() & exact.numbers.isfinite()
        if not bool(fine.any()):
            return 0.0
        size = _size(exact.numbers[fine])
        size = min(size, 1.0) if self.is_code else size
        error = _size(self.numbers[fine] - exact.numbers[fine])
        return error / size if size else float(error > 0)


def decision_of(call: Call) -> Decision | None:
    """None of a call that makes floating numbers, and of one that is given none."""
    if call.name in _NO_DECISIONS:
        return None
    made = made_by(call)
    operand = next((tensor for tensor in tensors_in((call.args, call.kwargs)) if tensor.is_floating_point()), None)
    if made is None or operand is None:
        return None
    is_code = call.name not in COMPARISONS and call.name not in ORDERS
    return Decision(_sample(made).clone(), _sample(_numbers(call, operand.detach())).clone(), is_code)


def changed_in(found: Sequence[Decision], exact: Sequence[Decision]) -> tuple[int, int, float]:
    """Changed elements, all elements, and the largest error of the numbers, over the turns of a place."""
    pairs = list(zip(found, exact))
    changed = sum(one.changed(other) for one, other in pairs)
    return changed, sum(other.made.numel() for _, other in pairs), max((a.lost(b) for a, b in pairs), default=0.0)


def made_by(call: Call) -> torch.Tensor | None:
    """The first integers or booleans of a result, or its whole numbers."""
    results = tensors_in(call.result)
    if call.name in TO_WHOLE and results:
        return results[0].detach()
    return next((each.detach() for each in results if not (each.is_floating_point() or each.is_complex())), None)


def axis_of(call: Call) -> int | None:
    """The axis along which a call puts numbers in order; None of all axes, and of another call."""
    name = call.name
    if call.name not in ORDERS:
        return None
    position = 2 if name == "topk" else 1
    found = call.kwargs.get("dim", call.args[position] if len(call.args) > position else None)
    if found is None and name in ("topk", *WHOLE_ORDERS):
        return -1
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _numbers(call: Call, operand: torch.Tensor) -> torch.Tensor:
    if call.name in COMPARISONS:
        return differences(call)
    if call.name not in ORDERS or not operand.dim():
        return operand
    axis = axis_of(call)
    return operand - (operand.mean() if axis is None else operand.mean(axis, keepdim=True))


def differences(call: Call) -> torch.Tensor:
    """The numbers whose sign a comparison asks for."""
    first, second = (_detached(value) for value in (call.args[0], _second(call)))
    found: torch.Tensor = first - second
    return found


def _second(call: Call) -> Any:
    return call.args[1] if len(call.args) > 1 else call.kwargs["other"]


def _detached(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return float(value)
    return value.detach().float()


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.reshape(-1)
    return flat[:: max(1, -(-flat.numel() // _MOST_ELEMENTS))]


def _size(numbers: torch.Tensor) -> float:
    return float(numbers.double().square().mean().sqrt())
