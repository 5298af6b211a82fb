"""Differences of numbers that agree in all digits of the format."""

from __future__ import annotations

import torch

from halfscope.torch.doctor.transformations.patterns import Pattern, Rewrite, number_of, plain_name


def one_minus_cos(pattern: Pattern) -> Rewrite | None:
    made = pattern.made(0, "cos") if plain_name(pattern.call) == "rsub" else None
    if made is None or number_of(pattern.call.args[1]) != 1:
        return None
    x, text = made.args[0], pattern.text(made, 0)
    return Rewrite(f"2 * torch.sin({text} / 2) ** 2", lambda: 2 * torch.sin(x / 2) ** 2)


def difference_of_roots(pattern: Pattern) -> Rewrite | None:
    if plain_name(pattern.call) != "sub":
        return None
    first, second = pattern.made(0, "sqrt"), pattern.made(1, "sqrt")
    if first is None or second is None:
        return None
    a, b, left, right = first.args[0], second.args[0], pattern.text(first, 0), pattern.text(second, 0)
    text = f"({left} - {right}) / (torch.sqrt({left}) + torch.sqrt({right}))"
    return Rewrite(text, lambda: (a - b) / (torch.sqrt(a) + torch.sqrt(b)))


def difference_of_squares(pattern: Pattern) -> Rewrite | None:
    if plain_name(pattern.call) != "sub":
        return None
    pair = [pattern.made(index, "pow", "square", "mul") for index in (0, 1)]
    for made in pair:
        if made is None or (plain_name(made) == "pow" and number_of(made.args[1]) != 2):
            return None
        if plain_name(made) == "mul" and made.args[0] is not made.args[1]:
            return None
    first, second = pair
    assert first is not None and second is not None
    a, b, left, right = first.args[0], second.args[0], pattern.text(first, 0), pattern.text(second, 0)
    return Rewrite(f"({left} - {right}) * ({left} + {right})", lambda: (a - b) * (a + b))


def sum_minus_term(pattern: Pattern) -> Rewrite | None:
    """(a + b) - a is b."""
    made = pattern.made(0, "add") if plain_name(pattern.call) == "sub" else None
    if made is None or len(pattern.call.args) < 2 or len(made.args) < 2:
        return None
    other = pattern.call.args[1]
    for index in (0, 1):
        same = made.args[index] is other or (
            number_of(other) is not None and number_of(made.args[index]) == number_of(other)
        )
        rest = made.args[1 - index]
        if same and isinstance(rest, torch.Tensor) and rest.shape == made.result.shape:
            return Rewrite(pattern.text(made, 1 - index), lambda rest=rest: rest * 1)
    return None


def product_of_one_plus(pattern: Pattern) -> Rewrite | None:
    """x (1 + w) is x + x w."""
    if plain_name(pattern.call) != "mul":
        return None
    for index in (1, 0):
        made = pattern.made(index, "add")
        if made is None or len(made.args) < 2 or number_of(made.args[1]) != 1:
            continue
        x, w = pattern.call.args[1 - index], made.args[0]
        if isinstance(x, torch.Tensor):
            left, right = pattern.text(pattern.call, 1 - index), pattern.text(made, 0)
            return Rewrite(f"{left} + {left} * {right}", lambda x=x, w=w: x + x * w)
    return None


DIFFERENCES = (one_minus_cos, difference_of_roots, difference_of_squares, sum_minus_term, product_of_one_plus)
