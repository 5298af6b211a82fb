"""The arithmetic of an emulation, entered without a model, and comparison of bits."""

from __future__ import annotations

from typing import Any

import torch

from halfscope.torch.emulate.book import Book
from halfscope.torch.emulate.casts import Caster
from halfscope.torch.emulate.mode import EmulatedArithmetic, ModeOptions
from halfscope.torch.emulate.parameters import Parameters
from halfscope.torch.emulate.places import Places
from halfscope.torch.emulate.step import Step
from halfscope.torch.policy import Policy


def arithmetic() -> EmulatedArithmetic:
    """Emulation under policy fp32, so that only tensors of 16 bits are emulated, uncounted."""
    model, policy, book = torch.nn.Identity(), Policy("fp32", None, {}), Book(1, "fp16")
    book.enabled = False
    caster = Caster(book, 0, Step())
    return EmulatedArithmetic(
        policy, Places(model, policy), caster, Parameters(model, policy, caster), ModeOptions(strict=True)
    )


def tensors_of(value: Any) -> list[torch.Tensor]:
    """In a result."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for part in value for tensor in tensors_of(part)] if isinstance(value, (tuple, list)) else []


def difference(wanted: Any, found: Any) -> str:
    """Difference of two results in type, shape or bits, in words; NaNs are one. Empty for equal results."""
    if isinstance(wanted, (tuple, list)):
        parts = [difference(a, b) for a, b in zip(wanted, found)]
        return "; ".join(f"result {place}: {part}" for place, part in enumerate(parts) if part)
    if not isinstance(wanted, torch.Tensor):
        return "" if wanted == found else f"{wanted}, not {found}"
    if wanted.dtype != found.dtype or wanted.shape != found.shape:
        return f"{wanted.dtype} {tuple(wanted.shape)}, not {found.dtype} {tuple(found.shape)}"
    same = wanted == found
    if wanted.is_floating_point():
        same = (same & (wanted.signbit() == found.signbit())) | (wanted.isnan() & found.isnan())
    if bool(same.all()):
        return ""
    first = int((~same).flatten().nonzero()[0])
    pair = wanted.flatten()[first].item(), found.flatten()[first].item()
    return f"{int((~same).sum())} of {same.numel()}, the first at {first}: {pair[0]!r}, not {pair[1]!r}"


def copied(value: Any, double: bool = False) -> Any:
    """Arguments whose tensors are new, of 64 bits if `double`."""
    if isinstance(value, torch.Tensor):
        return value.double() if double and value.is_floating_point() else value.clone()
    if isinstance(value, (tuple, list)):
        return type(value)(copied(part, double) for part in value)
    if isinstance(value, dict):
        return {key: copied(part, double) for key, part in value.items()}
    return torch.float64 if double and isinstance(value, torch.dtype) else value
