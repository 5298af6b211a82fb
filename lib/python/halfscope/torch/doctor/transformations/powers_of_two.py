"""A power of two before what does not change by it, as a norm: tried, and every later result changes by one factor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from halfscope.torch.doctor.call_mode import CallMode
from halfscope.torch.doctor.calls import Call, Change
from halfscope.torch.doctor.examination import Examination
from halfscope.torch.doctor.nested_tensors import floats_in
from halfscope.torch.doctor.program import Trial
from halfscope.torch.doctor.source_text import CallPlace, expression_of
from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.doctor.transformations.patterns import plain_name
from halfscope.torch.doctor.typing_edits import wrapped_operand

_ROOM = 2.0**3
_SAME_FACTOR = 1e-5
_MOST_ELEMENTS = 4096  # are compared in each result
_HOMOGENEOUS = (
    "mul",
    "matmul",
    "mm",
    "bmm",
    "sum",
    "cumsum",
    "div",
    "linear",
    "square",
    "pow",
    "vector_norm",
    "norm",
    "prod",
)


def powers_of_two(group: Group) -> Iterator[Candidate]:
    """Candidates at each call near the group whose result overflows."""
    largest = group.about.program.format.largest
    for call in group.near():
        if plain_name(call) not in _HOMOGENEOUS or not call.args or not isinstance(call.args[0], torch.Tensor):
            continue
        size = _size_in_fp32(call)
        if not math.isfinite(size) or size <= largest:
            continue
        degree = 2 if plain_name(call) in ("square", "pow") else 1
        k = math.ceil(math.log2(size / largest * _ROOM) / degree)
        candidate = _candidate(group, call, k)
        of_size_1 = _candidate(group, call, math.ceil(math.log2(size) / degree))
        if _all_by_one_factor(group, candidate) and _all_by_one_factor(group, of_size_1):
            yield candidate


def _size_in_fp32(call: Call) -> float:
    """The largest result of the call in FP32 on the operands as they are."""
    try:
        with torch.no_grad():
            found = floats_in(call.func(*call.args, **call.kwargs))
    except Exception:  # an operand that an operation in place has changed meanwhile
        return math.nan
    return max((float(each.abs().max()) for each in found if each.numel()), default=math.nan)


def scaled(factor: float) -> Change:
    def change(mode: CallMode, func: Any, args: tuple, kwargs: dict) -> Any:
        return func(args[0] * factor, *args[1:], **kwargs)

    return change


def _candidate(group: Group, call: Call, k: int) -> Candidate:
    expression = expression_of(call.place)
    node = None if expression is None else expression.operand(0, call.func)
    edits, name = (), "its first operand"
    if expression is not None and node is not None:
        name = f"`{' '.join(expression.text(node).split())}`"
        if call.place.is_typed and plain_name(call) != "linear":
            edits = (wrapped_operand(call.place, expression, node, f".mul(2.0**-{k})"),)  # type: ignore[assignment]
    words = f"multiply {name} by 2.0**-{k}, in {call.place.called}: what follows does not change by it"
    return Candidate("power of two", words, group.changed({call.place: scaled(2.0**-k)}), False, edits, call.place)


def _all_by_one_factor(group: Group, candidate: Candidate) -> bool:
    """Whether FP32's later results change by one factor for all of their elements, so that no other term is added.

    A softmax of large numbers saturates, and so does not change on this batch: the same is asked at a size of 1.
    """
    about = group.about
    exact = replace(candidate.trial, is_exact=True)
    before = _results_from(about, replace(exact, calls=group.base.calls), candidate.place)
    after = _results_from(about, exact, candidate.place)
    if before is None or after is None or len(before) != len(after):
        return False
    return all(a.shape == b.shape and _is_one_factor(a, b) for a, b in zip(before, after))


def _results_from(about: Examination, trial: Trial, place: CallPlace | None) -> list[torch.Tensor] | None:
    """Results from the first call at a place on: some elements of each, so that these stay small beside a step."""
    found: list[torch.Tensor] = []
    begins = False

    def note(call: Call) -> None:
        nonlocal begins
        begins = begins or call.place == place
        if begins:
            found.extend(_sample(each.detach()) for each in floats_in(call.result))

    return None if about.run(trial, note) is None else found


def _sample(tensor: torch.Tensor) -> torch.Tensor:
    """An odd step, which is no multiple of most rows' lengths."""
    step = -(-tensor.numel() // _MOST_ELEMENTS)
    return tensor.reshape(-1)[:: max(1, step | 1)].clone()


def _is_one_factor(before: torch.Tensor, after: torch.Tensor) -> bool:
    both = (before != 0) & before.isfinite() & after.isfinite()
    if not bool(both.any()):
        return True
    ratio = after[both] / before[both]
    return bool((ratio - ratio[0]).abs().max() <= _SAME_FACTOR * ratio[0].abs())
