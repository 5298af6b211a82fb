"""Validator of the few words of JSON Schema that docs/reference/report.schema.json has."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from recording.source_tree import ROOT

SCHEMA = json.loads((ROOT / "docs/reference/report.schema.json").read_text(encoding="utf-8"))
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None)}
WORDS = {
    "$schema", "title", "type", "required", "additionalProperties", "properties", "const", "enum", "items", "minLength",
    "minimum",
}  # fmt: skip


def faults(value: Any, schema: dict[str, Any] = SCHEMA, at: str = "report") -> Iterator[str]:
    """Each breach as "report.findings[0].line: ..."."""
    assert schema.keys() <= WORDS, f"the validator does not know {schema.keys() - WORDS}"
    types = schema.get("type", list(TYPES))
    if not any(type(value) is TYPES[name] for name in ([types] if isinstance(types, str) else types)):
        yield f"{at}: {value!r} is not of type {types}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        yield f"{at}: too short"
    if isinstance(value, int) and value < schema.get("minimum", value):
        yield f"{at}: {value} is too small"
    if isinstance(value, dict):
        yield from _faults_of_keys(value, schema, at)
    for index, part in enumerate(value if isinstance(value, list) else ()):
        yield from faults(part, schema.get("items", {}), f"{at}[{index}]")


def _faults_of_keys(value: dict[str, Any], schema: dict[str, Any], at: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{at}: lacks {name}" for name in schema.get("required", ()) if name not in value)
    for name, part in value.items():
        if name in properties:
            yield from faults(part, properties[name], f"{at}.{name}")
        elif not schema.get("additionalProperties", True):
            yield f"{at}: has {name}"
