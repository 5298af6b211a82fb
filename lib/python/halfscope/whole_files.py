"""Files that are written whole or not at all."""

from __future__ import annotations

from pathlib import Path


def write_whole(path: Path, contents: str | bytes) -> Path:
    """Writes `contents`, text as UTF-8, under another name first; returns `path`."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    return temporary.replace(path)
