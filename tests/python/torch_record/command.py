"""The command line of the record: write, compare, list."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from torch_record.differences import differences


class Refused(Exception):
    """The request is wrong: one line for the user."""


def main(arguments: list[str], usage: str) -> int:
    try:
        match arguments:
            case ["write", file, *patterns]:
                return write(Path(file), patterns)
            case ["compare", before, after]:
                return compare(Path(before), Path(after))
            case ["list", *patterns]:
                print("\n".join(chosen(patterns)))
                return 0
    except Refused as refused:
        print(f"torch_record: {refused}", file=sys.stderr)
        return 2
    is_asked = arguments in (["-h"], ["--help"])
    print(usage.strip(), file=sys.stdout if is_asked else sys.stderr)
    return 0 if is_asked else 2


def check_tree() -> None:
    """Raises Refused where Python takes halfscope from another tree than these tests, which an environment may do."""
    import halfscope

    package, tree = Path(halfscope.__file__).resolve(), Path(__file__).resolve().parents[3]
    if not package.is_relative_to(tree):
        raise Refused(f"halfscope is {package.parent}, not that of {tree}; install it there: pip install --editable .")


def chosen(patterns: list[str]) -> dict[str, Any]:
    """Cases that a pattern names. Raises Refused for a pattern without a case."""
    from torch_record.cases import all_cases

    check_tree()
    cases = all_cases()
    for pattern in patterns:
        if not any(fnmatch(name, pattern) for name in cases):
            raise Refused(f"no case {pattern!r}; `list` has their names")
    return {name: case for name, case in cases.items() if not patterns or any(fnmatch(name, p) for p in patterns)}


def write(file: Path, patterns: list[str]) -> int:
    from torch_record.cases import environment, record

    if not file.parent.is_dir():
        raise Refused(f"{file}: no folder {file.parent}")
    cases = chosen(patterns)
    found = {name: record(case) for name, case in progress(cases)}
    text = json.dumps({"environment": environment(), "cases": found}, indent=1, sort_keys=True)
    partial = file.with_name(f"{file.name}.partial")
    partial.write_text(f"{text}\n", encoding="utf-8")
    partial.replace(file)
    print(f"{len(found)} cases: {file}")
    return 0


def progress(cases: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    """The cases, with a status line where stderr is a terminal."""
    for number, (name, case) in enumerate(cases.items(), 1):
        if sys.stderr.isatty():
            print(f"\r\033[K{number} of {len(cases)}: {name}", end="", file=sys.stderr, flush=True)
        yield name, case
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {"environment": found["environment"], "cases": found["cases"]}
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise Refused(f"{file}: no record; `write` makes one") from None


def compare(before: Path, after: Path) -> int:
    one, other = read(before), read(after)
    for line in differences(one["environment"], other["environment"]):
        print(f"made in another environment, numbers may differ: {line}")
    names = sorted({*one["cases"], *other["cases"]})
    changed = 0
    for name in names:
        if name not in one["cases"] or name not in other["cases"]:
            print(f"{name}: only in {before if name in one['cases'] else after}")
            changed += 1
        elif one["cases"][name] != other["cases"][name]:
            print(f"{name}:")
            for line in differences(one["cases"][name], other["cases"][name]):
                print(f"  {line}")
            changed += 1
    print(f"{changed} of {len(names)} cases differ" if changed else f"{len(names)} cases: the same")
    return 1 if changed else 0
