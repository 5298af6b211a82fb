"""Text of the call under way in the source, by the columns that Python keeps from 3.11 on."""

from __future__ import annotations

import linecache
from functools import cache
from types import CodeType, FrameType
from typing import NamedTuple


class Span(NamedTuple):
    """Part of a source file; columns count bytes, as Python's do; a column of -1 is unknown."""

    line: int
    column: int
    end_line: int
    end_column: int


def span_of(frame: FrameType) -> Span:
    """Span of the call that a frame makes."""
    positions = _positions(frame.f_code)
    found = positions[frame.f_lasti // 2] if frame.f_lasti // 2 < len(positions) else (None,) * 4
    if None in found:
        return Span(frame.f_lineno, -1, frame.f_lineno, -1)
    line, end_line, column, end_column = found
    return Span(line, column, end_line, end_column)


@cache
def _positions(code: CodeType) -> list[tuple]:
    """Positions by instruction; empty before Python 3.11."""
    return list(code.co_positions()) if hasattr(code, "co_positions") else []


@cache
def text_of(file: str, span: Span) -> str:
    """The source of a span; empty where it is not known."""
    if span.column < 0:
        return ""
    lines = [linecache.getline(file, number) for number in range(span.line, span.end_line + 1)]
    if not all(lines):
        return ""
    raw = [line.encode() for line in lines]
    raw[-1] = raw[-1][: span.end_column]
    raw[0] = raw[0][span.column :]
    return b"".join(raw).decode()
