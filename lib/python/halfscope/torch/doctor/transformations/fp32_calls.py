"""One call in FP32, or the shortest region from line to line: the remedy that needs no knowledge of the fault."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.program import Run
from halfscope.torch.doctor.source_text import CallPlace, Expression, expression_of
from halfscope.torch.doctor.storage_kinds import Numbers
from halfscope.torch.doctor.transformations.candidate import Candidate, Group
from halfscope.torch.doctor.typing_edits import Edit, is_atom, wrapped_operand

_MARGINS = (0, 1, 2, 4)  # calls on each side of a group that is not enough
_SHORT = {"fp16": ".half()", "bf16": ".bfloat16()"}
_TYPES = {"fp16": "torch.float16", "bf16": "torch.bfloat16"}
_SHORT_NAMES = ("half", "bfloat16")
_METHODS = {"half": "float", "bfloat16": "float", "type_as": "to"}  # the method that a cast to float32 has


def one_call(group: Group) -> Iterator[Candidate]:
    """Each call of the group and near it alone, its result rounded again."""
    if len(group.places) == 1:
        return
    for place in group.places:
        yield fp32_candidate(group, (place,))


def region(group: Group) -> Iterator[Candidate]:
    """The calls of the group together; then all calls between them, and more and more on both sides."""
    yield fp32_candidate(group, group.places)
    order = group.about.places
    at = [order.index(place) for place in group.places if place in order]
    first, last = min(at), max(at)
    known = {group.places}
    for margin in _MARGINS:
        places = tuple(order[max(0, first - margin) : last + 1 + margin])
        if places not in known:
            known.add(places)
            yield fp32_candidate(group, places)


def fp32_candidate(group: Group, places: tuple[CallPlace, ...]) -> Candidate:
    before = group.base.calls.region or frozenset()
    trial = replace(group.base, calls=replace(group.base.calls, region=before | set(places)))
    return Candidate("FP32", _words(group, places), trial, False, (), places[0])


def _words(group: Group, places: tuple[CallPlace, ...]) -> str:
    first, last = places[0], places[-1]
    parts = (["inputs"] if group.base.lifts_inputs else []) + (["weights"] if group.base.lifts_weights else [])
    kept = f"keep the {' and '.join(parts)} that they take in FP32, and " if parts else ""
    off = (
        ", with torch.autocast switched off for it" if group.narrow.blocks.types or group.narrow.blocks.outside else ""
    )
    if len(places) == 1:
        return f"{kept}compute {first.called} in FP32{off}"
    return f"{kept}compute in FP32 from {first.called} to {last.called} ({_lines(first, last)}){off}"


def _lines(first: CallPlace, last: CallPlace) -> str:
    """Functions call each other, so that the last line may stand in another file, or above the first."""
    if first.file != last.file:
        return f"{first} to {last}"
    if first.span.line == last.span.line:
        return f"line {first.span.line}"
    return f"lines {first.span.line} {'to' if first.span.line < last.span.line else 'and'} {last.span.line}"


def edits_of(run: Run, format: str) -> tuple[Edit, ...]:
    """The casts of a run with a region in FP32, as a user types them; empty where one has no text."""
    down = _SHORT.get(format, "")
    calls = {call.place: call for call in reversed(run.log.calls)}  # the first at each place
    types = run.log.types
    found = [
        _cast_edit(calls.get(place), key, ".float()" if kind is Numbers.LIFTED else down)
        for (place, key), kind in run.log.casts.items()
        if types.get(place) != key
    ]
    found += [_type_edit(calls.get(place), key) for place, key in types.items()]
    found += [_answer_edit(place, format) for place in sorted(run.log.answers, key=lambda each: (each.file, each.span))]
    if None in found:
        return ()
    return tuple(dict.fromkeys(edit for edits in found for edit in edits or ()))


def _answer_edit(place: CallPlace, format: str) -> list[Edit] | None:
    """`x.dtype` behind the region, of a tensor that is in FP32 there, is the format's type."""
    if format not in _TYPES or not place.is_typed or not place.text.endswith(".dtype"):
        return None
    return [Edit(place.file, place.span, text=_TYPES[format])]


def _type_edit(call: Call | None, key: int | str) -> list[Edit] | None:
    """A call that asks for 16 bits asks for float32: `x.half()`, `x.to(h.dtype)`, `torch.ones(3, dtype=h.dtype)`."""
    expression = None if call is None or not call.place.is_typed else expression_of(call.place)
    if call is None or expression is None or not isinstance(expression.node, ast.Call):
        return None
    name = [_name_edit(call, expression, _METHODS[call.name])] if call.name in _METHODS else []
    if call.name in _SHORT_NAMES:
        return name
    node = expression.operand(key, call.func)
    return None if node is None else [*name, Edit(call.place.file, expression.span(node), text="torch.float32")]


def _name_edit(call: Call, expression: Expression, name: str) -> Edit:
    """Another method: the name behind the last dot."""
    span = expression.span(expression.node.func)  # type: ignore[attr-defined]
    first = span.end_column - len(call.name)
    return Edit(call.place.file, span._replace(line=span.end_line, column=first), text=name)


def _cast_edit(call: Call | None, key: int | str, suffix: str) -> list[Edit] | None:
    expression = None if call is None or not suffix else expression_of(call.place)
    if call is None or expression is None or not call.place.is_typed:
        return None
    if call.place.module:
        return _layer_edit(call.place, expression, key, suffix)
    node = expression.operand(key, call.func)
    if node is None:
        return None
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return [wrapped_operand(call.place, expression, part, suffix) for part in parts]


def _layer_edit(place: CallPlace, expression: Expression, key: int | str, suffix: str) -> list[Edit] | None:
    """`self.layer.float()(x.float())`: the layer's weights follow its input."""
    node = expression.node
    if not isinstance(node, ast.Call) or not node.args:
        return None
    if key == 0:
        return [wrapped_operand(place, expression, node.args[0], suffix)]
    if suffix != ".float()" or not is_atom(node.func):
        return None
    return [Edit(place.file, expression.span(node.func), "", ".float()")]
