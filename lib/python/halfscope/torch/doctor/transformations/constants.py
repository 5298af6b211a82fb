"""Another constant: an eps that the format has, a mask that it holds, a bound below 1."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from halfscope.formats import Format
from halfscope.torch.doctor.call_mode import CallMode
from halfscope.torch.doctor.calls import Call, Change
from halfscope.torch.doctor.source_text import expression_of
from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.doctor.typing_edits import Edit

_SMALL = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
_LARGE = (6e4, 3e4, 1e4, 1e3)
_NEAR_1 = (0.9995, 0.999, 0.998, 0.99)
# Constants that a call has where the source gives none.
_DEFAULTS = {
    "normalize": ("eps", 1e-12, 3), "cosine_similarity": ("eps", 1e-8, 3), "pairwise_distance": ("eps", 1e-6, 3),
    "gaussian_nll_loss": ("eps", 1e-6, 4), "poisson_nll_loss": ("eps", 1e-8, 5),
}  # fmt: skip
# Their constants are sizes, or are used in FP32 in each format.
_NO_CONSTANTS_NAMES = """
    arange linspace dropout interpolate randint layer_norm rms_norm batch_norm group_norm instance_norm
"""
_NO_CONSTANTS = frozenset(_NO_CONSTANTS_NAMES.split())
Key = int | str


def constants(group: Group) -> Iterator[Candidate]:
    """Each constant near the group alone, then all that the format does not hold together."""
    format = group.about.program.format
    overflows = bool(group.about.first.origins)
    found = [(call, key, value) for call in group.near() for key, value in _constants_of(call)]
    found = [each for each in found if better_constants(each[2], format, overflows)]
    for call, key, value in found:
        for better in better_constants(value, format, overflows):
            yield _candidate(group, [(call, key, value, better)])
    if len(found) > 1:
        for level in range(3):
            chosen = [(*each, better_constants(each[2], format, overflows)) for each in found]
            yield _candidate(group, [(c, k, v, found[min(level, len(found) - 1)]) for c, k, v, found in chosen])


def better_constants(value: float, format: Format, overflows: bool = False) -> list[float]:
    """Constants to try for one that the format does not hold as FP32 does, the nearest first.

    overflows: the step does, so that a mask which the format holds may be too large for what is added to it.
    """
    size, sign = abs(value), 1.0 if value >= 0 else -1.0
    if size > 0.9 * format.largest:
        return [sign * large for large in _LARGE if large < format.largest]
    if overflows and size >= 1e3 and not format.has_range_of_fp32:
        return [sign * large for large in (*_LARGE, 1e2) if large < 0.99 * size]
    if 0 < size < 1e-2:
        return [sign * small for small in _SMALL if small > size * 1.01 and format.round(small) > 0]
    if 0.9 < size < 1 and format.round(size) in (1.0, size) and 1 - size < 0.002:
        return [sign * near for near in _NEAR_1 if near < size and format.round(near) < 1]
    return []


def _constants_of(call: Call) -> Iterator[tuple[Key, float]]:
    if call.name in _NO_CONSTANTS:
        return
    for key, value in [*enumerate(call.args), *call.kwargs.items()]:
        is_large = isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1000
        if (isinstance(value, float) or is_large) and math.isfinite(value):
            yield key, float(value)
    if call.name in _DEFAULTS:
        key, value, position = _DEFAULTS[call.name]
        if key not in call.kwargs and len(call.args) <= position:
            yield key, value


def _candidate(group: Group, chosen: list[tuple[Call, Key, float, float]]) -> Candidate:
    words, edits, is_typed = [], [], True
    by_place: dict[Any, list[tuple[Key, float]]] = {}
    for call, key, value, better in chosen:
        edit = _edit(call, key, better)
        old = short(value)
        if edit is not None and edit.text is not None and call.place.is_typed:
            edits.append(edit)
        else:
            is_typed = False
        name = f"{key}={short(better)}" if edit is not None and edit.span == call.place.span else short(better)
        words.append(f"write {name} for {old} in {call.place.called}")
        by_place.setdefault(call.place, []).append((key, better))
    changes = {place: _with_arguments(values) for place, values in by_place.items()}
    return Candidate(
        "constant", "; ".join(dict.fromkeys(words)), group.changed(changes), True,
        tuple(edits) if is_typed else (), chosen[0][0].place,
    )  # fmt: skip


def _with_arguments(values: list[tuple[Key, float]]) -> Change:
    def change(mode: CallMode, func: Any, args: tuple, kwargs: dict) -> Any:
        given = list(args)
        for key, value in values:
            if isinstance(key, str):
                kwargs = {**kwargs, key: value}
            else:
                given[key] = value
        return func(*given, **kwargs)

    return change


def _edit(call: Call, key: Key, better: float) -> Edit | None:
    expression = expression_of(call.place)
    if expression is None:
        return None
    node = expression.operand(key, call.func)
    if node is not None:
        return Edit(call.place.file, expression.span(node), text=short(better))
    text = call.place.text
    if not isinstance(key, str) or not text.endswith(")"):
        return None
    return Edit(call.place.file, call.place.span, text=f"{text[:-1]}, {key}={short(better)})")


def short(value: float) -> str:
    """A constant as sources have it: -1e4, 0.999; with all of its digits near 1."""
    text = f"{value:.6g}"
    if abs(float(text)) == 1:
        return repr(value)
    mantissa, _, exponent = f"{value:.0e}".partition("e")
    brief = f"{mantissa}e{int(exponent)}"
    is_same = abs(float(brief) / value - 1) < 1e-9
    return brief if is_same and not 1e-3 <= abs(value) < 1e3 else text
