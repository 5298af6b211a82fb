"""Tables that a page has from another one."""

from __future__ import annotations

import re
from pathlib import Path

from recording.source_tree import ROOT


def quoted_table(page: str, column: str, root: Path = ROOT) -> str:
    """The table of a page of docs/ whose first column is called `column`; links are left as their words.

    Raises ValueError for a page without such a table.
    """
    lines = (root / "docs" / page).read_text(encoding="utf-8").splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith(f"| {column} |")), None)
    if start is None:
        raise ValueError(f"docs/{page} has no table whose first column is '{column}'")
    end = next((at for at in range(start, len(lines)) if not lines[at].startswith("|")), len(lines))
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", "\n".join(lines[start:end]))
