"""Tables of the keys of what is told as JSON, with their meanings: those of the package's schemas."""

from __future__ import annotations

from typing import Any

from halfscope.schemas import schema


def schema_fields(name: str, *keys: str) -> str:
    """A row per key: its place, such as findings[].line, and its meaning.

    keys: places in the schema; all of its first level where none is given. Raises ValueError for a key that it lacks.
    """
    own = schema(name)
    lines = ["| key | meaning |", "|---|---|"]
    for key in keys or own["properties"]:
        lines.append(f"| `{key}` | {_part(own, key, name)['description']} |")
    return "\n".join(lines)


def _part(own: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    part = own
    for word in key.split("."):
        found = part.get("properties", {}).get(word.removesuffix("[]"))
        if found is None:
            raise ValueError(f"the schema '{name}' has no key '{key}'; one of {', '.join(part.get('properties', {}))}")
        part = found.get("items", {}) if word.endswith("[]") else found
    return part
