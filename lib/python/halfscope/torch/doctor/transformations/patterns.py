"""Provenance of an operand: the calls that made it, through views, casts and guards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from halfscope.torch.doctor.call_log import CallLog
from halfscope.torch.doctor.call_names import CASTS, VIEWS, is_in_place
from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.typing_edits import Texts

_NAMES = {
    "__radd__": "add", "__rmul__": "mul", "__rsub__": "rsub", "__rdiv__": "rdiv", "__rtruediv__": "rdiv",
    "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub", "__pow__": "pow",
    "__matmul__": "matmul", "logsigmoid": "logsigmoid", "clip": "clamp", "clamp_min": "clamp", "clamp_max": "clamp",
}  # fmt: skip
_GUARD = 1e-3  # a smaller number that is added, or a lower bound, guards a function's domain


def plain_name(call: Call) -> str:
    """One name for a function, its method and its operator."""
    return _NAMES.get(call.name, call.name.strip("_") if call.name.startswith("__") else call.name)


def number_of(value: Any) -> float | None:
    """A constant, also of a tensor without axes that needs no gradient."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, torch.Tensor) and value.dim() == 0 and not value.requires_grad and value.numel() == 1:
        return float(value)
    return None


@dataclass
class Pattern:
    """A call with the provenance of its operands, and the texts of these at the call's place."""

    call: Call
    log: CallLog
    texts: Texts

    def made(self, index: int, *names: str) -> Call | None:
        """The call of one of these names that made operand `index`, through guards; None of another one."""
        args = self.call.args
        return self.made_of(args[index], *names) if index < len(args) else None

    def made_of(self, tensor: Any, *names: str) -> Call | None:
        for _ in range(6):
            call = self.log.maker(tensor)
            if call is None or is_in_place(call):
                return None
            if plain_name(call) in names:
                return call
            if call.name not in CASTS and not _is_guard(call):
                return None
            tensor = call.args[0]
        return None

    def text(self, call: Call, index: int) -> str:
        return self.texts.of(call, index)

    def keyword(self, call: Call, name: str, position: int, default: Any = None) -> Any:
        if name in call.kwargs:
            return call.kwargs[name]
        return call.args[position] if len(call.args) > position else default


def _is_guard(call: Call) -> bool:
    name = plain_name(call)
    if name == "add" and len(call.args) > 1:
        number = number_of(call.args[1])
        return number is not None and 0 <= number < _GUARD
    return name in ("clamp", "clamp_min", "maximum", "nan_to_num") or (name in VIEWS and name == "contiguous")


@dataclass(frozen=True)
class Rewrite:
    """Another way to compute the same: its text, and the function that was run."""

    text: str
    compute: Callable[..., Any]
    inside: torch.Tensor | None = None  # operand of a function that a kernel of the format computes in FP32 inside


Rule = Callable[[Pattern], "Rewrite | None"]
