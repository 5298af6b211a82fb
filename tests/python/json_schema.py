"""Breaches of the JSON schemas that the package has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema

from halfscope.schemas import schema

SCHEMA = schema("report")


def faults(value: Any, schema: dict[str, Any] = SCHEMA) -> Iterator[str]:
    """Each breach as "findings[0].line: ..."."""
    for error in jsonschema.Draft202012Validator(schema).iter_errors(value):
        yield f"{error.json_path.removeprefix('$').removeprefix('.')}: {error.message}"
