"""Tables of text, with their columns under each other."""

from __future__ import annotations

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], right: bool = True) -> str:
    """The rows, the first of which has the titles: the first column to the left, the others to the right or left."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        first, *others = [cell.ljust(width) for cell, width in zip(row, widths)]
        if right:
            others = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append("  ".join([first, *others]).rstrip())
    return "\n".join(lines)
