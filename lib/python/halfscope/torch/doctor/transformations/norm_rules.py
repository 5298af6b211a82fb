"""Norms that square what the format does not hold the square of."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.transformations.patterns import Pattern, Rewrite, number_of, plain_name


def _square(pattern: Pattern, tensor: Any) -> tuple[Call, Any] | None:
    """The call that squared an operand, and the operand."""
    made = pattern.made_of(tensor, "pow", "square", "mul")
    if made is None:
        return None
    name = plain_name(made)
    if name == "pow" and number_of(made.args[1]) != 2:
        return None
    if name == "mul" and made.args[1] is not made.args[0]:
        return None
    return made, made.args[0]


def root_of_squares(pattern: Pattern) -> Rewrite | None:
    """sqrt of a sum or a mean of squares, and its reciprocal."""
    name = plain_name(pattern.call)
    made = pattern.made(0, "sum", "mean") if name in ("sqrt", "rsqrt") else None
    square = None if made is None else _square(pattern, made.args[0])
    dim = None if made is None else pattern.keyword(made, "dim", 1)
    if made is None or square is None or not isinstance(dim, int):
        return None
    call, x = square
    keeps, text = bool(pattern.keyword(made, "keepdim", 2, False)), pattern.text(call, 0)
    factor = x.shape[dim] ** -0.5 if plain_name(made) == "mean" else 1.0
    norm = f"torch.linalg.vector_norm({text}, dim={dim}{', keepdim=True' if keeps else ''})"
    if plain_name(made) == "mean":
        norm = f"({norm} * {text}.shape[{dim}] ** -0.5)"

    def compute() -> Any:
        found = torch.linalg.vector_norm(x, dim=dim, keepdim=keeps)
        found = found * factor if plain_name(made) == "mean" else found
        return found if name == "sqrt" else 1 / found

    return Rewrite(norm if name == "sqrt" else f"1 / {norm}", compute)


def rms_norm(pattern: Pattern) -> Rewrite | None:
    """x * rsqrt(mean(x^2) + eps) over the last axis."""
    if plain_name(pattern.call) not in ("mul", "div"):
        return None
    wanted = "rsqrt" if plain_name(pattern.call) == "mul" else "sqrt"
    for index in (0, 1):
        root = pattern.made(1 - index, wanted)
        made = None if root is None else pattern.made_of(root.args[0], "mean")
        square = None if made is None else _square(pattern, made.args[0])
        if root is None or made is None or square is None or pattern.keyword(made, "dim", 1) not in (-1, [-1], (-1,)):
            continue
        call, x = square
        if x is not pattern.call.args[index]:
            continue
        added = pattern.made_of(root.args[0], "add")
        eps = number_of(added.args[1]) if added is not None else 0.0
        if eps is None:
            continue
        size, text = x.shape[-1], pattern.text(call, 0)
        return Rewrite(
            f"torch.nn.functional.rms_norm({text}, {text}.shape[-1:], eps={eps:g})",
            lambda wide, size=size, eps=eps: functional.rms_norm(wide, (size,), eps=eps),
            x,
        )
    return None


def variance(pattern: Pattern) -> Rewrite | None:
    """E[x^2] - E[x]^2."""
    if plain_name(pattern.call) != "sub":
        return None
    mean = pattern.made(0, "mean")
    square = None if mean is None else _square(pattern, mean.args[0])
    other = _square(pattern, pattern.call.args[1]) if len(pattern.call.args) > 1 else None
    if mean is None or square is None or other is None or pattern.made_of(other[1], "mean") is None:
        return None
    call, x = square
    dim, keeps = pattern.keyword(mean, "dim", 1), bool(pattern.keyword(mean, "keepdim", 2, False))
    text = pattern.text(call, 0)
    if dim is None:
        return Rewrite(f"({text} - {text}.mean()).square().mean()", lambda: (x - x.mean()).square().mean())
    tail = f"{dim}{', keepdim=True' if keeps else ''}"
    return Rewrite(
        f"({text} - {text}.mean({dim}, keepdim=True)).square().mean({tail})",
        lambda: (x - x.mean(dim, keepdim=True)).square().mean(dim, keepdim=keeps),
    )


NORMS = (rms_norm, root_of_squares, variance)
