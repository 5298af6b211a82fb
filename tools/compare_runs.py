#!/usr/bin/env python3
"""Compares the records of two folders of results byte for byte, and shows the first record that differs.

    tools/compare_runs.py [--checkpoints] FOLDER FOLDER

Every metrics.jsonl and histograms.jsonl below them counts; with --checkpoints, weights and optimizer state too, and
what else a checkpoint holds. Exit status 0: the same; 1: different; 2: nothing to compare.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

RECORDS = ("metrics.jsonl", "histograms.jsonl")
CHECKPOINT = ".safetensors"


class NothingToCompare(Exception):
    """The folders do not hold records."""


def compared_files(folder: Path, checkpoints: bool) -> dict[str, Path]:
    """Files of `folder` to compare, by their path below it. Raises NothingToCompare without any records."""
    if not folder.is_dir():
        raise NothingToCompare(f"{folder} is no folder")
    paths = [path for path in sorted(folder.rglob("*")) if path.name in RECORDS]
    if not paths:
        raise NothingToCompare(f"{folder} holds no {' or '.join(RECORDS)}")
    if checkpoints:
        paths += sorted(folder.rglob(f"checkpoint/*{CHECKPOINT}"))
    return {str(path.relative_to(folder)): path for path in paths}


def parts_of(checkpoint: Path) -> dict[str, object]:
    """Each tensor's type, shape and bytes by name, then the metadata by key."""
    content = checkpoint.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:begin])
    metadata = header.pop("__metadata__", {})
    tensors = {
        name: (tensor["dtype"], tensor["shape"], content[slice(*(begin + at for at in tensor["data_offsets"]))])
        for name, tensor in header.items()
    }
    return {**tensors, **{f"metadata {key}": value for key, value in metadata.items()}}


def first_different_part(one: Path, other: Path) -> str | None:
    """The first tensor or entry of the metadata that differs in two checkpoints; None for equal bytes."""
    if one.read_bytes() == other.read_bytes():
        return None
    parts, others = parts_of(one), parts_of(other)
    for name in [*parts, *(name for name in others if name not in parts)]:
        if name not in parts or name not in others:
            return f"{name}: only in the {'first' if name in parts else 'second'}"
        if parts[name] != others[name]:
            return f"{name} differs"
    return "the same tensors in another order"


def first_different_value(one: object, other: object, where: str = "") -> str:
    """Where two parsed records first differ, and both values: "tensors[3].flushed: 4 | 5"."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            if key not in one or key not in other:
                return f"{where}.{key}".lstrip(".") + f": only in the {'first' if key in one else 'second'}"
            if one[key] != other[key]:
                return first_different_value(one[key], other[key], f"{where}.{key}")
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return f"{where.lstrip('.')}: {len(one)} values | {len(other)} values"
        for i, (x, y) in enumerate(zip(one, other)):
            if x != y:
                return first_different_value(x, y, f"{where}[{i}]")
    return f"{where.lstrip('.') or 'the record'}: {json.dumps(one)} | {json.dumps(other)}"


def describe_records(one: bytes, other: bytes) -> str:
    """Difference between two lines that are not the same bytes."""
    try:
        first, second = json.loads(one), json.loads(other)
    except ValueError:
        return f"{one[:200]!r} | {other[:200]!r}"
    known = first if isinstance(first, dict) else {}
    site = ", ".join(f"{key} {known[key]}" for key in ("step", "tensor", "role") if key in known)
    difference = first_different_value(first, second) if first != second else "written differently, the same values"
    return f"{site}: {difference}" if site else difference


def first_difference(one: Path, other: Path) -> str | None:
    """The first line that is not the same in two files, described; None where all bytes are."""
    lines, others = one.read_bytes().split(b"\n"), other.read_bytes().split(b"\n")
    for number, (x, y) in enumerate(zip(lines, others), 1):
        if x != y:
            return f"line {number}: {describe_records(x, y)}"
    if len(lines) != len(others):
        return f"{len(lines) - 1} lines | {len(others) - 1} lines"
    return None


def compare(folder: Path, other: Path, *, checkpoints: bool = False) -> list[str]:
    """One line per file that differs."""
    files, others = compared_files(folder, checkpoints), compared_files(other, checkpoints)
    problems = []
    for name in sorted({*files, *others}):
        if name not in files or name not in others:
            problems.append(f"{name}: only below {folder if name in files else other}")
            continue
        describe = first_different_part if name.endswith(CHECKPOINT) else first_difference
        difference = describe(files[name], others[name])
        if difference:
            problems.append(f"{name}: {difference}")
    return problems


def main(arguments: list[str]) -> int:
    checkpoints = "--checkpoints" in arguments
    if checkpoints:
        arguments = [word for word in arguments if word != "--checkpoints"]
    if len(arguments) != 2 or arguments[0].startswith("-"):
        asked = arguments in (["-h"], ["--help"])
        print(__doc__.strip(), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2
    folder, other = map(Path, arguments)
    try:
        problems = compare(folder, other, checkpoints=checkpoints)
        files = compared_files(folder, checkpoints)
    except NothingToCompare as problem:
        print(f"compare_runs.py: {problem}", file=sys.stderr)
        return 2
    kinds = "records and checkpoints" if checkpoints else "records"
    print("\n".join(problems) if problems else f"{len(files)} files of {kinds}: the same bytes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
