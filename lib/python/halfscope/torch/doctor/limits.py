"""Length or size from which a call overflows, tried with fewer terms or smaller operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import halfscope
from halfscope.formats import Format
from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.nested_tensors import floats_in
from halfscope.torch.doctor.transformations.patterns import plain_name
from halfscope.torch.words import counted

_SUMS = ("sum", "prod", "cumsum", "cumprod", "logsumexp", "norm", "vector_norm", "nansum")
_PRODUCTS = ("matmul", "mm", "bmm", "mv", "dot", "linear")
_TIMES_ALL = ("mul", "matmul", "mm", "bmm", "mv", "dot", "einsum", "addcmul")
_LEAST = 2.0**-24  # factor of operands

Given = tuple[tuple, dict[str, Any]]


def limit_words(call: Call, format: Format) -> str:
    """A clause on two trials of one call, of which one is finite; empty where none was."""
    try:
        with torch.no_grad():
            return _of_terms(call, format) or _of_size(call, format)
    except Exception:  # operands of another shape by now, or a function that refuses smaller ones
        return ""


def _is_finite(call: Call, given: Given, format: Format) -> bool:
    found = floats_in(call.func(*given[0], **given[1]))
    return all(math.isfinite(format.round(float(each.abs().max()))) for each in found if each.numel())


def _of_terms(call: Call, format: Format) -> str:
    pair = _terms(call)
    if pair is None:
        return ""
    count, given = pair
    if count < 2 or not _is_finite(call, given(1), format) or _is_finite(call, given(count), format):
        return ""
    fine, ill = 1, count
    while ill - fine > 1:
        middle = (fine + ill) // 2
        fine, ill = (middle, ill) if _is_finite(call, given(middle), format) else (fine, middle)
    return f"tried with fewer terms: the first {counted(fine, 'term')} of {count} are finite, the first {ill} are not"


def _terms(call: Call) -> tuple[int, Callable[[int], Given]] | None:
    """Number of the terms of each sum or product, and the call's arguments with the first ones alone."""
    name, first = plain_name(call), call.args[0].detach() if call.args else None
    if not isinstance(first, torch.Tensor) or not first.dim():
        return None
    if name in _PRODUCTS and len(call.args) > 1 and isinstance(call.args[1], torch.Tensor):
        axis = -1 if name == "linear" or call.args[1].dim() == 1 else -2
        return first.shape[-1], partial(_products, call, axis)
    if name not in _SUMS:
        return None
    dim = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 and name not in ("norm", "vector_norm") else None)
    if isinstance(dim, (tuple, list)):
        dim = dim[0] if len(dim) == 1 else None if len(dim) == first.dim() else math.nan
    if dim is None:
        return first.numel(), partial(_flat, call)
    return None if not isinstance(dim, int) else (first.shape[dim], partial(_narrowed, call, dim))


def _flat(call: Call, count: int) -> Given:
    """All axes as one, which stands for those that the call names."""
    flat = call.args[0].detach().reshape(-1)[:count]
    rest = (0, *call.args[2:]) if len(call.args) > 1 and isinstance(call.args[1], (tuple, list)) else call.args[1:]
    return (flat, *rest), {**call.kwargs, "dim": 0} if call.kwargs.get("dim") is not None else call.kwargs


def _narrowed(call: Call, dim: int, count: int) -> Given:
    return (call.args[0].detach().narrow(dim, 0, count), *call.args[1:]), call.kwargs


def _products(call: Call, axis: int, count: int) -> Given:
    first, second = call.args[0].detach()[..., :count], call.args[1].detach().narrow(axis, 0, count)
    return (first, second, *call.args[2:]), call.kwargs


def _of_size(call: Call, format: Format) -> str:
    """Smaller operands: all of a product, else the first."""

    def is_finite(factor: float) -> bool:
        return _is_finite(call, _scaled(call, factor, format), format)

    if not is_finite(_LEAST) or is_finite(1.0):
        return ""
    fine, ill = _LEAST, 1.0
    while ill > 2 * fine:
        middle = math.sqrt(fine * ill)
        fine, ill = (middle, ill) if is_finite(middle) else (fine, middle)
    for _ in range(format.precision + 1):
        middle = (fine + ill) / 2
        fine, ill = (middle, ill) if is_finite(middle) else (fine, middle)
    up_to, at = (_sizes(call, factor, format) for factor in (fine, ill))
    return f"tried with smaller operands: finite up to {up_to}, not at {at}"


def _are_scaled(call: Call) -> list[bool]:
    """Positional arguments that become smaller."""
    floats = [isinstance(value, torch.Tensor) and value.is_floating_point() for value in call.args]
    if plain_name(call) in _TIMES_ALL or True not in floats:
        return floats
    first = call.args[floats.index(True)]
    return [is_float and value is first for is_float, value in zip(floats, call.args)]


def _scaled(call: Call, factor: float, format: Format) -> Given:
    """The operands as the format holds them."""
    given = zip(call.args, _are_scaled(call))
    return tuple(_held(value, factor, format) if scales else value for value, scales in given), call.kwargs


def _held(tensor: torch.Tensor, factor: float, format: Format) -> torch.Tensor:
    return halfscope.round((tensor.detach().cpu() * factor).contiguous(), format.name).to(tensor.device)


def _sizes(call: Call, factor: float, format: Format) -> str:
    given, _ = _scaled(call, factor, format)
    sizes = [f"{float(value.abs().max()):.5g}" for value, scales in zip(given, _are_scaled(call)) if scales]
    return " and ".join(dict.fromkeys(sizes))
