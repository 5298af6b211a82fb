"""Logarithms of what vanishes or overflows: of a softmax, a sigmoid, a sum of exponentials, a product."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.transformations.patterns import Pattern, Rewrite, number_of, plain_name


def _is_log(pattern: Pattern) -> bool:
    return plain_name(pattern.call) == "log" and len(pattern.call.args) == 1


def _dim(pattern: Pattern, call: Call) -> Any:
    return pattern.keyword(call, "dim", 1)


def log_of_softmax(pattern: Pattern) -> Rewrite | None:
    made = pattern.made(0, "softmax") if _is_log(pattern) else None
    if made is None:
        return None
    x, dim = made.args[0], _dim(pattern, made)
    return Rewrite(f"torch.log_softmax({pattern.text(made, 0)}, dim={dim})", lambda: torch.log_softmax(x, dim=dim))


def log_of_sigmoid(pattern: Pattern) -> Rewrite | None:
    made = pattern.made(0, "sigmoid") if _is_log(pattern) else None
    if made is None:
        return None
    x = made.args[0]
    text = f"torch.nn.functional.logsigmoid({pattern.text(made, 0)})"
    return Rewrite(text, lambda: functional.logsigmoid(x))


def log_of_one_minus(pattern: Pattern) -> Rewrite | None:
    """log(1 - sigmoid(x)) and log(1 - softmax(x)) of two classes; log(1 - exp(x)); log(1 - x)."""
    made = pattern.made(0, "rsub") if _is_log(pattern) else None
    if made is None or number_of(made.args[1]) != 1:
        return None
    inner = pattern.made_of(made.args[0], "sigmoid")
    if inner is not None:
        x, text = inner.args[0], pattern.text(inner, 0)
        return Rewrite(f"torch.nn.functional.logsigmoid(-{text})", lambda: functional.logsigmoid(-x))
    inner = pattern.made_of(made.args[0], "exp")
    if inner is not None:
        x, text = inner.args[0], pattern.text(inner, 0)
        return Rewrite(f"torch.log(-torch.expm1({text}))", lambda: torch.log(-torch.expm1(x)))
    inner = pattern.made_of(made.args[0], "pow")
    if inner is not None and number_of(inner.args[1]) == 2:
        tanh = pattern.made_of(inner.args[0], "tanh")
        if tanh is not None:
            x, text = tanh.args[0], pattern.text(tanh, 0)
            return Rewrite(
                f"2 * (0.6931472 - {text} - torch.nn.functional.softplus(-2 * {text}))",
                lambda: 2 * (0.6931472 - x - functional.softplus(-2 * x)),
            )
    x, text = made.args[0], pattern.text(made, 0)
    return Rewrite(f"torch.log1p(-{text})", lambda: torch.log1p(-x))


def log_of_sum_of_exp(pattern: Pattern) -> Rewrite | None:
    made = pattern.made(0, "sum") if _is_log(pattern) else None
    inner = None if made is None else pattern.made_of(made.args[0], "exp")
    dim = None if made is None else _dim(pattern, made)
    if inner is None or made is None or dim is None:
        return None
    keeps = bool(pattern.keyword(made, "keepdim", 2, False))
    x = inner.args[0]
    text = f"torch.logsumexp({pattern.text(inner, 0)}, dim={dim}{', keepdim=True' if keeps else ''})"
    return Rewrite(text, lambda: torch.logsumexp(x, dim=dim, keepdim=keeps))


def log_of_one_plus(pattern: Pattern) -> Rewrite | None:
    """log(1 + exp(x)) is softplus(x), log(1 + x) is log1p(x)."""
    if plain_name(pattern.call) == "log1p":
        inner = pattern.made(0, "exp")
        one: Any = 1
    else:
        made = pattern.made(0, "add") if _is_log(pattern) else None
        if made is None or len(made.args) < 2:
            return None
        one = number_of(made.args[1])
        inner = pattern.made_of(made.args[0], "exp")
        if one == 1 and inner is None:
            x, text = made.args[0], pattern.text(made, 0)
            return Rewrite(f"torch.log1p({text})", lambda: torch.log1p(x))
    if inner is None or one != 1:
        return None
    y, text = inner.args[0], pattern.text(inner, 0)
    return Rewrite(f"torch.nn.functional.softplus({text})", lambda: functional.softplus(y))


def log_of_product(pattern: Pattern) -> Rewrite | None:
    made = pattern.made(0, "prod") if _is_log(pattern) else None
    if made is None:
        return None
    dim = _dim(pattern, made)
    inner = pattern.made_of(made.args[0], "sigmoid")
    call, log, name = (inner, functional.logsigmoid, "torch.nn.functional.logsigmoid")
    if inner is None:
        call, log, name = made, torch.log, "torch.log"
    assert call is not None
    x, text = call.args[0], pattern.text(call, 0)
    if dim is None:
        return Rewrite(f"{name}({text}).sum()", lambda: log(x).sum())
    return Rewrite(f"{name}({text}).sum({dim})", lambda: log(x).sum(dim))


def _of_two(name: str, sign: str, combine: Callable[[Any, Any], Any]) -> Callable[[Pattern], Rewrite | None]:
    def rule(pattern: Pattern) -> Rewrite | None:
        made = pattern.made(0, name) if _is_log(pattern) else None
        if made is None or len(made.args) < 2 or not all(isinstance(each, torch.Tensor) for each in made.args[:2]):
            return None
        a, b = made.args[:2]
        text = f"torch.log({pattern.text(made, 0)}) {sign} torch.log({pattern.text(made, 1)})"
        return Rewrite(text, lambda: combine(torch.log(a), torch.log(b)))

    return rule


def log_of_power(pattern: Pattern) -> Rewrite | None:
    made = pattern.made(0, "pow", "sqrt", "square", "exp") if _is_log(pattern) else None
    if made is None:
        return None
    x, text, name = made.args[0], pattern.text(made, 0), plain_name(made)
    if name == "exp":
        return Rewrite(text, lambda: x * 1)
    power = {"sqrt": 0.5, "square": 2.0}.get(name) or number_of(made.args[1])
    if power is None:
        return None
    return Rewrite(f"{power:g} * torch.log(abs({text}))", lambda: power * torch.log(abs(x)))


LOGARITHMS = (
    log_of_softmax, log_of_sigmoid, log_of_one_minus, log_of_sum_of_exp, log_of_one_plus, log_of_product,
    _of_two("mul", "+", lambda a, b: a + b), _of_two("div", "-", lambda a, b: a - b), log_of_power,
)  # fmt: skip
