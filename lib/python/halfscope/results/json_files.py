"""Reading the files of a results folder: JSON and JSON lines, with errors that say which file and what is wrong."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

FORMAT_VERSION = 1


def read_json(path: Path) -> dict:
    """The object in `path`. Raises ValueError, with the file's name, where it is absent or no JSON object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except ValueError as error:
        raise ValueError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: expected a JSON object, found {type(value).__name__}")
    return value


def finite_or_none(value: float | None) -> float | None:
    """The number, or None, which is null, for an infinity and NaN, which JSON does not have."""
    return value if value is not None and math.isfinite(value) else None


def read_versioned_json(path: Path) -> dict:
    """The object in `path`, as read_json; raises ValueError for a format version that this package does not read."""
    value = read_json(path)
    require_version(value, str(path))
    return value


def require_version(value: dict, where: str) -> None:
    """Raises ValueError where the format version of `value`, out of `where`, is not the one that this package reads."""
    found = value.get("format_version")
    if found != FORMAT_VERSION:
        raise ValueError(f"{where}: format_version {found!r} found, {FORMAT_VERSION} expected")


def require(value: dict, keys: Iterable[str], path: Path) -> None:
    """Raises ValueError where `value`, out of `path`, lacks one of `keys`: an older version left it out."""
    absent = [key for key in keys if key not in value]
    if absent:
        raise ValueError(f"{path}: it lacks {', '.join(map(repr, absent))}; an older version wrote it: run it again")


def read_json_lines(path: Path) -> Iterator[dict]:
    """The objects of `path`, one per line. A truncated line is an error: the file is not what the run wrote."""
    try:
        file = path.open(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    with file:
        for number, line in enumerate(file, start=1):
            if not line.endswith("\n"):
                raise ValueError(f"{path}:{number}: the last line is truncated")
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not valid JSON ({error})") from None


def require_whole_lines(path: Path) -> None:
    """Raises ValueError where there is no file, or its last line has no end: then it is not what the run wrote."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            whole = file.read() in (b"", b"\n")
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    if not whole:
        number = path.read_bytes().count(b"\n") + 1
        raise ValueError(f"{path}:{number}: the last line is truncated")
