"""A clamp of the argument, for a clamp of the result: what lies beyond the bound then has a gradient of 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch

from halfscope.torch.doctor.call_mode import CallMode
from halfscope.torch.doctor.calls import Call, Change
from halfscope.torch.doctor.source_text import expression_of
from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.doctor.transformations.constants import short
from halfscope.torch.doctor.transformations.patterns import number_of, plain_name
from halfscope.torch.doctor.typing_edits import wrapped_operand

_ROOM = 0.97  # share of the largest number
_INVERSES: dict[str, Callable[[float], float]] = {
    "exp": math.log, "expm1": math.log1p, "exp2": math.log2, "sinh": math.asinh, "cosh": math.acosh,
    "square": math.sqrt, "softplus": lambda bound: bound,
}  # fmt: skip


def clamps(group: Group) -> Iterator[Candidate]:
    """The argument of each function near the group that overflows, below what the format or a clamp behind it holds."""
    for call in group.near():
        inverse = _inverse(call)
        if inverse is None or not isinstance(call.args[0], torch.Tensor):
            continue
        largest = _ROOM * group.about.program.format.largest
        behind = {bound for bound in _bounds_behind(group, call) if bound <= largest}
        for bound in sorted({*behind, largest}, reverse=True):
            try:
                at = math.floor(inverse(bound) * 100) / 100
            except ValueError:
                continue
            if bound in behind or _is_unused_beyond(group, call, at):
                yield _candidate(group, call, at)


def _is_unused_beyond(group: Group, call: Call, bound: float) -> bool:
    """Whether FP32's outcome does not depend on the elements beyond a bound, as those that a mask drops.

    A clamp changes these elements. A function behind may saturate, which hides the change on this batch alone; so they
    become 0 and their own negatives instead.
    """
    about = group.about
    for stand_in in (lambda x: torch.zeros_like(x), torch.neg):
        exact = about.run(replace(group.changed({call.place: _replaced(bound, stand_in)}), is_exact=True))
        if exact is None or not about.floor.keeps_fp32(exact.outcome, about.exact.outcome, False):
            return False
    return True


def _replaced(bound: float, stand_in: Callable[[torch.Tensor], torch.Tensor]) -> Change:
    def change(mode: CallMode, func: Any, args: tuple, kwargs: dict) -> Any:
        return func(torch.where(args[0].abs() > bound, stand_in(args[0]), args[0]), *args[1:], **kwargs)

    return change


def _inverse(call: Call) -> Callable[[float], float] | None:
    name = plain_name(call)
    if name == "pow" and len(call.args) > 1:
        power = number_of(call.args[1])
        return None if power is None or power <= 1 else lambda bound: bound ** (1 / power)
    return _INVERSES.get(name)


def _bounds_behind(group: Group, call: Call) -> list[float]:
    """Upper bounds that clamps behind the call give its result, through a positive factor."""
    found = []
    for later in group.near():
        if plain_name(later) not in ("clamp", "minimum", "hardtanh", "min"):
            continue
        bounds = [later.kwargs.get("max"), *later.args[1:]]
        upper = [number for bound in bounds if (number := number_of(bound)) is not None and number > 0]
        maker = group.log.maker(later.args[0])
        factor = 1.0
        if maker is not None and plain_name(maker) == "mul" and maker is not call:
            factor = number_of(maker.args[1]) or 1.0
            maker = group.log.maker(maker.args[0])
        if maker is not None and maker.place == call.place and factor > 0:
            found += [bound / factor for bound in upper]
    return found


def _is_even(call: Call) -> bool:
    """Whether the function is as large at -x as at x."""
    name = plain_name(call)
    return name in ("square", "cosh") or (name == "pow" and number_of(call.args[1]) in (2, 4, 6))


def clamped(least: float | None, bound: float) -> Change:
    def change(mode: CallMode, func: Any, args: tuple, kwargs: dict) -> Any:
        return func(args[0].clamp(least, bound), *args[1:], **kwargs)

    return change


def _candidate(group: Group, call: Call, bound: float) -> Candidate:
    expression = expression_of(call.place)
    node = None if expression is None else expression.operand(0, call.func)
    is_even = _is_even(call)
    suffix = f".clamp(-{short(bound)}, {short(bound)})" if is_even else f".clamp(max={short(bound)})"
    edits, name = (), "its argument"
    if expression is not None and node is not None:
        name = f"`{' '.join(expression.text(node).split())}`"
        if call.place.is_typed:
            edits = (wrapped_operand(call.place, expression, node, suffix),)  # type: ignore[assignment]
    words = f"write {suffix} behind {name}, in {call.place.called}"
    return Candidate(
        "clamp",
        words,
        group.changed({call.place: clamped(-bound if is_even else None, bound)}),
        True,
        edits,
        call.place,
    )
