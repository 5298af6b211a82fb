"""Docstrings of the package as Markdown, for the site's reference: an extension of griffe.

A docstring is plain text. A line "name: text" of a parameter becomes an item of a list, a line that begins with
"Returns" or "Raises" a paragraph, and signs that Markdown would read as its own stay what they are.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

PARAMETER = re.compile(r"^(\*{0,2}[a-z_]\w*(?:, \*{0,2}[a-z_]\w*)*): (?=\S)")
OUTCOME = re.compile(r"^(Returns|Raises|Warns|Yields)\b")
CODE = re.compile(r"(`[^`]*`)")


def escaped(text: str) -> str:
    """Text whose signs Markdown leaves alone, outside of `code`."""
    parts = CODE.split(text)
    return "".join(part if part.startswith("`") else re.sub(r"([\[\]*_<>])", r"\\\1", part) for part in parts)


def markdown(text: str) -> str:
    """A docstring as Markdown."""
    lines: list[str] = []
    in_item = False
    for line in text.splitlines():
        parameter = PARAMETER.match(line)
        if parameter:
            if not in_item:
                lines.append("")
            names = ", ".join(f"`{name}`" for name in parameter[1].split(", "))
            lines.append(f"- {names}: {escaped(line[parameter.end() :])}")
            in_item = True
        elif in_item and line.startswith(" "):
            lines.append("    " + escaped(line.strip()))
        else:
            if OUTCOME.match(line) or in_item:
                lines.append("")
            in_item = False
            lines.append(escaped(line))
    return "\n".join(lines)


class PlainText(griffe.Extension):
    """Turns each docstring into Markdown as it is read."""

    def on_object(self, *, obj: griffe.Object, **options: Any) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
