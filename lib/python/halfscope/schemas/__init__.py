"""JSON schemas of the reports: of `report.to_dict()`, and of what commands print with `--json`."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

NAMES = ("report", "analyze", "formats", "updates", "replay")


def schema(name: str) -> dict[str, Any]:
    """The schema of a name: draft 2020-12, each key with its meaning as `description`.

    name: "report" for the report of a result in Python and for `check --json`; else the command. Raises ValueError for
    another name.
    """
    if name not in NAMES:
        raise ValueError(f"schema: no schema is called {name!r}; one of {', '.join(NAMES)}")
    return json.loads(files(__package__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8"))
