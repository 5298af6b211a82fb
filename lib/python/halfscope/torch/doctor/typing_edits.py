"""Changes of source text: what a user types for a remedy."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

from halfscope.torch.doctor.calls import Call
from halfscope.torch.doctor.source_text import CallPlace, Expression, expression_of
from halfscope.torch.events.call_text import Span


@dataclass(frozen=True)
class Edit:
    """Part of a file: put between two texts, or replaced by `text`."""

    file: str
    span: Span
    before: str = ""
    after: str = ""
    text: str | None = None


def typed(source: str, edits: list[Edit]) -> str:
    """The source with the edits of one file; what stands inside of a replaced part goes with it."""
    lines = source.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    raw = source.encode()
    spans = {
        (starts[edit.span.line - 1] + edit.span.column, starts[edit.span.end_line - 1] + edit.span.end_column, edit)
        for edit in edits
    }
    replaced = [(first, last) for first, last, edit in spans if edit.text is not None]
    outer = [
        (first, last, edit)
        for first, last, edit in spans
        if not any(a <= first and last <= b and (a, b) != (first, last) for a, b in replaced)
    ]
    events: list[tuple[tuple[int, int, int], int, bytes]] = []  # order, bytes to skip, bytes to write
    for first, last, edit in outer:
        if edit.text is not None:
            events.append(((first, 2, 0), last - first, edit.text.encode()))
        else:
            events.append(((first, 1, -last), 0, edit.before.encode()))
            events.append(((last, 0, -first), 0, edit.after.encode()))
    parts, at = [], 0
    for (position, _, _), skipped, text in sorted(events, key=lambda event: event[0]):
        parts += [raw[at:position], text]
        at = max(at, position + skipped)
    return b"".join([*parts, raw[at:]]).decode()


def is_atom(node: ast.expr) -> bool:
    """Whether `.float()` can be written behind an expression without brackets."""
    return isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))


def wrapped_operand(place: CallPlace, expression: Expression, node: ast.expr, suffix: str) -> Edit:
    before, after = ("", suffix) if is_atom(node) else ("(", f"){suffix}")
    return Edit(place.file, expression.span(node), before, after)


@dataclass
class Texts:
    """Texts of operands, as they can be written at the place of another call."""

    place: CallPlace  # where they are to be written
    edits: list[Edit] = field(default_factory=list)  # names given to operands that have none
    is_complete: bool = True

    def of(self, call: Call, index: int) -> str:
        """Operand `index` of an earlier call, in brackets where it needs them."""
        expression = expression_of(call.place) if call.place.is_typed else None
        node = None if expression is None else expression.operand(index, call.func)
        is_here = (call.place.file, call.place.function) == (self.place.file, self.place.function)
        if expression is None or node is None or not is_here:
            self.is_complete = False
            return "..."
        text = expression.text(node)
        if not self._is_the_same_here(call.place, node):
            name = f"z{len(self.edits) + 1}"
            self.edits.append(Edit(call.place.file, expression.span(node), f"({name} := ", ")"))
            return name
        return text if is_atom(node) or isinstance(node, ast.Constant) else f"({text})"

    def _is_the_same_here(self, made: CallPlace, node: ast.expr) -> bool:
        """Whether the operand's names are not assigned between its call and this place."""
        if self._contains(made):
            return True
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        calls = any(isinstance(part, ast.Call) for part in ast.walk(node))
        return not calls and not names & _assigned(made.file, made.span.line, self.place.span.line)

    def _contains(self, inner: CallPlace) -> bool:
        first, last = self.place.span, inner.span
        begins = (first.line, first.column) <= (last.line, last.column)
        return begins and (last.end_line, last.end_column) <= (first.end_line, first.end_column)


def _assigned(file: str, first: int, last: int) -> set[str]:
    """Names that lines of a file assign."""
    try:
        tree = ast.parse(Path(file).read_text())
    except (OSError, SyntaxError):
        return set()
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and first <= node.lineno < last
    }
