"""The difference of two records in lines for a person: the field, and the words before and after."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any

AROUND = 6  # words shown beside changed ones
MOST = 40  # lines of a case
_TENSOR = re.compile(r"\w+ \([\d, ]*\): ")


def differences(before: Any, after: Any) -> list[str]:
    """One line for each field that differs."""
    lines = list(_differences(before, after, ""))
    return [*lines[:MOST], f"and {len(lines) - MOST} more fields"] if len(lines) > MOST else lines


def _differences(before: Any, after: Any, field: str) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            place = f"{field} > {key}" if field else key
            if key not in before or key not in after:
                yield f"{place}: {'gone' if key in before else 'new'}: {_short((before | after)[key])}"
            else:
                yield from _differences(before[key], after[key], place)
    elif is_text(before) and is_text(after):
        yield f"{field}: {words(joined(before), joined(after))}"
    elif isinstance(before, list) and isinstance(after, list):
        yield from _of_lists(before, after, field)
    else:
        yield f"{field}: {_short(before)} -> {_short(after)}"


def is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and bool(value) and all(isinstance(part, str) for part in value)
    )


def joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "\n".join(text)


def _of_lists(before: list[Any], after: list[Any], field: str) -> Iterator[str]:
    if len(before) != len(after):
        yield f"{field}: {len(before)} entries -> {len(after)}"
    for place, (one, other) in enumerate(zip(before, after)):
        yield from _differences(one, other, f"{field}[{place}]")


def words(before: str, after: str) -> str:
    """Changed words in brackets, [-before-] and {+after+}, with their neighbours."""
    if _TENSOR.match(before) and _TENSOR.match(after):
        return elements(before, after)
    one, other = _words(before), _words(after)
    if len(one) == len(other) == 1:
        return f"{before} -> {after}"
    shown = []
    for group in difflib.SequenceMatcher(None, one, other, autojunk=False).get_grouped_opcodes(AROUND):
        parts = []
        for kind, first, last, start, end in group:
            if kind == "equal":
                parts.append(" ".join(one[first:last]))
                continue
            parts.append(f"[-{' '.join(one[first:last])}-]" if last > first else "")
            parts.append(f"{{+{' '.join(other[start:end])}+}}" if end > start else "")
        shown.append(" ".join(filter(None, parts)))
    return " ... ".join(shown)


def _words(text: str) -> list[str]:
    """Words, and ends of lines as words of their own."""
    return text.replace("\n", " \u23ce ").split(" ")


def elements(before: str, after: str) -> str:
    """Number of tensors' elements that differ, and the first of them."""
    (kind, _, one), (other_kind, _, other) = before.partition(": "), after.partition(": ")
    if kind != other_kind or "sha256" in before:
        return f"{before} -> {after}"
    pairs = list(zip(one.split(), other.split()))
    differing = [place for place, (x, y) in enumerate(pairs) if x != y]
    first = differing[0]
    return f"{kind}: {len(differing)} of {len(pairs)} elements, the first at {first}: {' -> '.join(pairs[first])}"


def _short(value: Any) -> str:
    text = joined(value) if is_text(value) else str(value)
    return text if len(text) <= 200 else f"{text[:200]} ..."
