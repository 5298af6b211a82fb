"""A finding of a diagnosis in three lines: what to change, why, and how sure that is."""

from __future__ import annotations

from typing import Any

from halfscope.reporting import Finding, Place, wrapped
from halfscope.torch.operations.rules import label_of

__all__ = ["Finding", "called", "digits", "in_percent", "operation_of", "place_of", "placed_at", "short", "wrapped"]


def placed_at(site: Any) -> dict[str, Any]:
    """The line of a finding, and its text; site: None where no source is known."""
    if site is None:
        return {}
    return {"place": Place(site.line.file, site.line.number, str(site)), "code": site.line.text}


def place_of(made: Any) -> str:
    """ "mlp.py:12, mul of module mlp"."""
    where = f"{made.site}, " if made.site is not None else ""
    return f"{where}{operation_of(made)}"


def operation_of(made: Any) -> str:
    """ "mul of module mlp"."""
    if made.is_outside:
        return f"{called(made.operation)} outside of the model"
    if made.module is None:
        return called(made.operation)
    return f"{called(made.operation)} of {f'module {made.module}' if made.module else 'the model'}"


def called(operation: str) -> str:
    """An operation as sources have it."""
    return label_of(operation).removesuffix("_backward_data").removesuffix("_backward")


def digits(value: float) -> str:
    return f"{value:.5g}"


def in_percent(share: float) -> str:
    """Three digits: "0.125 %"."""
    return f"{100 * share:.3g} %"


def short(value: float) -> str:
    """A constant as sources have it: -1e4; one of more digits with six of them."""
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    text = f"{mantissa}e{int(exponent)}"
    return text if abs(float(text) / value - 1) < 1e-6 else f"{value:.6g}"
