"""Tables and folded parts as HTML; every cell is escaped."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from html import escape


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Container[int] = ()) -> str:
    """A table under `head`, which may be empty; the columns at the places `numeric` are set to the right."""

    def row(cells: Sequence[str], tag: str) -> str:
        kinds = [" class=number" if place in numeric else "" for place in range(len(cells))]
        return "<tr>" + "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(cells, kinds)) + "</tr>"

    top = f"<thead>{row(head, 'th')}</thead>" if any(head) else ""
    body = "\n".join(row(cells, "td") for cells in rows)
    return f'<div class="scroll"><table>{top}<tbody>\n{body}\n</tbody></table></div>'


def folded(heading: str, content: str) -> str:
    """`content` behind a heading that opens it."""
    return f"<details><summary>{escape(heading)}</summary>\n{content}\n</details>"
