"""Exponentials that overflow though their quotient, product or difference does not."""

from __future__ import annotations

import torch
from torch.nn import functional

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.transformations.patterns import Pattern, Rewrite, number_of, plain_name


def _exp_of_one_plus(pattern: Pattern) -> Call | None:
    """The exponential of 1 / (1 + exp(z))."""
    name = plain_name(pattern.call)
    if name == "rdiv" and number_of(pattern.call.args[1]) != 1:
        return None
    if name not in ("rdiv", "reciprocal"):
        return None
    made = pattern.made(0, "add")
    if made is None or number_of(made.args[1]) != 1:
        return None
    return pattern.made_of(made.args[0], "exp")


def sigmoid(pattern: Pattern) -> Rewrite | None:
    made = _exp_of_one_plus(pattern)
    if made is None:
        return None
    z, text = made.args[0], pattern.text(made, 0)
    return Rewrite(f"torch.sigmoid(-{text})", lambda: torch.sigmoid(-z))


def quotient_of_sums(pattern: Pattern) -> Rewrite | None:
    """exp(x) / exp(x).sum(dim) is softmax(x)."""
    if plain_name(pattern.call) != "div":
        return None
    top, total = pattern.made(0, "exp"), pattern.made(1, "sum")
    if top is None or total is None or pattern.made_of(total.args[0], "exp") is None:
        return None
    dim, x = pattern.keyword(total, "dim", 1), top.args[0]
    if not isinstance(dim, int):
        return None
    return Rewrite(f"torch.softmax({pattern.text(top, 0)}, dim={dim})", lambda: torch.softmax(x, dim=dim))


def product(pattern: Pattern) -> Rewrite | None:
    """exp(a) * exp(b) is exp(a + b); exp(a) / exp(b) is exp(a - b)."""
    name = plain_name(pattern.call)
    if name not in ("mul", "div"):
        return None
    first, second = pattern.made(0, "exp"), pattern.made(1, "exp")
    if first is None or second is None:
        return None
    a, b = first.args[0], second.args[0]
    left, right = pattern.text(first, 0), pattern.text(second, 0)
    if name == "mul":
        return Rewrite(f"torch.exp({left} + {right})", lambda: torch.exp(a + b))
    return Rewrite(f"torch.exp({left} - {right})", lambda: torch.exp(a - b))


def difference_from_one(pattern: Pattern) -> Rewrite | None:
    """exp(x) - 1, and 1 - exp(x)."""
    name = plain_name(pattern.call)
    made = pattern.made(0, "exp")
    if name not in ("sub", "rsub") or made is None or number_of(pattern.call.args[1]) != 1:
        return None
    x, text = made.args[0], pattern.text(made, 0)
    if name == "sub":
        return Rewrite(f"torch.expm1({text})", lambda: torch.expm1(x))
    return Rewrite(f"-torch.expm1({text})", lambda: -torch.expm1(x))


def loss_of_sigmoid(pattern: Pattern) -> Rewrite | None:
    """binary_cross_entropy(sigmoid(x), y), with the mean of its elements."""
    call = pattern.call
    made = pattern.made(0, "sigmoid") if plain_name(call) == "binary_cross_entropy" else None
    if made is None or len(call.args) < 2 or set(call.kwargs) - {"reduction", "weight"}:
        return None
    if len(call.args) > 2 or call.kwargs.get("weight") is not None:
        return None
    x, y, how = made.args[0], call.args[1], call.kwargs.get("reduction", "mean")
    name = "torch.nn.functional.binary_cross_entropy_with_logits"
    extra = "" if how == "mean" else f", reduction={how!r}"
    text = f"{name}({pattern.text(made, 0)}, {pattern.text(call, 1)}{extra})"
    return Rewrite(text, lambda: functional.binary_cross_entropy_with_logits(x, y, reduction=how))


def gelu(pattern: Pattern) -> Rewrite | None:
    """0.5 x (1 + tanh(0.797885 (x + 0.044715 x^3)))."""
    if plain_name(pattern.call) != "mul":
        return None
    for index in (0, 1):
        factor = pattern.made(1 - index, "add")
        tanh = None if factor is None else pattern.made_of(factor.args[0], "tanh")
        half = pattern.made(index, "mul")
        if tanh is None or half is None or not isinstance(half.args[0], torch.Tensor):
            continue
        x, text = half.args[0], pattern.text(half, 0)
        return Rewrite(
            f"torch.nn.functional.gelu({text}, approximate='tanh')", lambda x=x: functional.gelu(x, approximate="tanh")
        )
    return None


EXPONENTIALS = (sigmoid, quotient_of_sums, product, difference_from_one, loss_of_sigmoid, gelu)
