"""Order of operations: a divisor moves ahead of the sum or product that overflows without it."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.transformations.patterns import Pattern, Rewrite, number_of, plain_name

_LINEAR = ("sum", "mean", "matmul", "mm", "bmm", "mul", "cumsum", "einsum", "prod", "dot", "mv")
_SYMBOLS = {"matmul": "@", "mul": "*"}


def _factor(pattern: Pattern) -> tuple[str, Any, str] | None:
    """Operator, factor or divisor, and its text, of a call that scales its first operand."""
    call, name = pattern.call, plain_name(pattern.call)
    if name not in ("div", "mul") or len(call.args) < 2:
        return None
    other = call.args[1]
    if number_of(other) is None:
        return None
    return ("/" if name == "div" else "*"), other, pattern.text(call, 1)


def scaled_ahead(pattern: Pattern) -> Rewrite | None:
    """(a @ b) / c is (a / c) @ b; x.sum(d) / n is (x / n).sum(d)."""
    factor = _factor(pattern)
    made = None if factor is None else pattern.made(0, *(name for name in _LINEAR if name not in ("einsum", "prod")))
    if factor is None or made is None or not isinstance(made.args[0], torch.Tensor):
        return None
    sign, value, text = factor
    first = f"({pattern.text(made, 0)} {sign} {text})"
    a = made.args[0]

    def compute() -> Any:
        scaled = a / value if sign == "/" else a * value
        return made.func(scaled, *made.args[1:], **made.kwargs)

    return Rewrite(_with_first(pattern, made, first), compute)


def _with_first(pattern: Pattern, made: Call, first: str) -> str:
    name = plain_name(made)
    if name in _SYMBOLS and len(made.args) == 2:
        return f"{first} {_SYMBOLS[name]} {pattern.text(made, 1)}"
    rest = [repr(value) for value in made.args[1:] if not isinstance(value, torch.Tensor)]
    rest += [
        pattern.text(made, index) for index, value in enumerate(made.args) if index and isinstance(value, torch.Tensor)
    ]
    rest += [f"{key}={value!r}" for key, value in made.kwargs.items() if value is not None]
    if any(isinstance(value, torch.Tensor) for value in made.kwargs.values()):
        pattern.texts.is_complete = False
    return f"{first}.{name}({', '.join(rest)})"


def divided_between(pattern: Pattern) -> Rewrite | None:
    """a * b / c is (a / c) * b, of a tensor c."""
    call = pattern.call
    made = pattern.made(0, "mul") if plain_name(call) == "div" else None
    if made is None or len(call.args) < 2 or not isinstance(call.args[1], torch.Tensor) or len(made.args) < 2:
        return None
    if not all(isinstance(each, torch.Tensor) for each in made.args[:2]):
        return None
    a, b, c = made.args[0], made.args[1], call.args[1]
    text = f"({pattern.text(made, 0)} / {pattern.text(call, 1)}) * {pattern.text(made, 1)}"
    return Rewrite(text, lambda: (a / c) * b)


def mean_for_sum(pattern: Pattern) -> Rewrite | None:
    """x.sum(d) / n, of n elements, is x.mean(d)."""
    factor = _factor(pattern)
    made = pattern.made(0, "sum") if factor is not None and factor[0] == "/" else None
    if factor is None or made is None:
        return None
    x, dim = made.args[0], pattern.keyword(made, "dim", 1)
    elements = x.numel() if dim is None else x.numel() // max(made.result.numel(), 1)
    if number_of(factor[1]) != elements:
        return None
    keeps = bool(pattern.keyword(made, "keepdim", 2, False))
    text = pattern.text(made, 0)
    if dim is None:
        return Rewrite(f"{text}.mean()", lambda: x.mean())
    tail = f"{dim}{', keepdim=True' if keeps else ''}"
    return Rewrite(f"{text}.mean({tail})", lambda: x.mean(dim, keepdim=keeps))


ORDERS = (mean_for_sum, scaled_ahead, divided_between)
