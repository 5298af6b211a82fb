"""Names, numbers and shares as sentences have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any


def listed(names: Iterable[str]) -> str:
    """Names: all of up to four, else three and how many more."""
    every = list(names)
    return ", ".join(every) if len(every) <= 4 else f"{', '.join(every[:3])} and {len(every) - 3} more"


def number(things: object, noun: str) -> str:
    """3 layers."""
    return counted(len(things), noun)  # type: ignore[arg-type]


def counted(size: int, noun: str) -> str:
    """1 layer, 3 layers, 2 batches."""
    return f"{size} {noun}" if size == 1 else f"{size} {noun}{'es' if noun.endswith('ch') else 's'}"


def called(name: str) -> str:
    """The model itself has no name if it is a layer."""
    return name or "the model"


def percent(share: float) -> str:
    """12.5 %."""
    return f"{100 * share:.1f} %"


def unknown_name(given: str, names: Iterable[str]) -> str:
    """Words of a refusal: a module that the model does not have, and names near it."""
    near = get_close_matches(given, filter(None, names), n=3, cutoff=0.5)
    return f"the model has no module '{given}'" + (f"; near it: {', '.join(near)}" if near else "")


def quoted(text: str) -> str:
    """A string with double quotes, as the sources have them."""
    plain = repr(text)
    return plain if '"' in text else f'"{plain[1:-1]}"'


def to_paste(name: str, entries: Mapping[str, Any]) -> list[str]:
    """Lines of code that give a name to a dictionary, such as the exceptions of `emulate`."""
    return [f"{name} = {{", *(f"    {quoted(key)}: {_code(value)}," for key, value in entries.items()), "}"]


def _code(change: Any) -> str:
    if isinstance(change, Mapping):
        return f"{{{', '.join(f'{quoted(key)}: {_code(value)}' for key, value in change.items())}}}"
    return quoted(change) if isinstance(change, str) else repr(change)
