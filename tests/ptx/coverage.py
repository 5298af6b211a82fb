#!/usr/bin/env python3
"""Coverage of interpreted kernels: entries that no process launched, typed opcodes that none executed.

coverage.py FILE...   merge the lines that HALFSCOPE_PTX_COVERAGE=FILE made processes append
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

Counts = dict[str, Counter[str]]
KINDS = {"entries": "launched", "opcodes": "executed"}


def merged(records: Iterable[dict[str, dict[str, int]]]) -> Counts:
    """The sums of all records; names that were never reached have 0."""
    counts: Counts = {kind: Counter() for kind in KINDS}
    for record in records:
        for kind, sums in counts.items():
            for name, count in record[kind].items():
                sums[name] += count
    return counts


def report(counts: Counts) -> Iterator[str]:
    """A line per kind, then one per name that was never reached."""
    for kind, reached in KINDS.items():
        never = sorted(name for name, count in counts[kind].items() if count == 0)
        yield f"{kind}: {len(counts[kind]) - len(never)} of {len(counts[kind])} {reached}"
        yield from (f"  never {reached}: {name}" for name in never)


def parse(line: str) -> dict[str, dict[str, int]]:
    record = json.loads(line)
    if not isinstance(record, dict) or set(record) != set(KINDS):
        raise ValueError(f"no record of {' and '.join(KINDS)}")
    for counts in record.values():
        if not isinstance(counts, dict) or not all(isinstance(count, int) for count in counts.values()):
            raise ValueError("counts are whole numbers by name")
    return record


def records_of(files: list[str]) -> Iterator[dict[str, dict[str, int]]]:
    for name in files:
        for number, line in enumerate(Path(name).read_text(encoding="utf-8").splitlines(), 1):
            try:
                yield parse(line)
            except ValueError as error:
                raise ValueError(f"{name}, line {number}: {error}") from None


def main(files: list[str]) -> int:
    if not files or files[0].startswith("-"):
        print("usage: coverage.py FILE...", file=sys.stderr)
        return 2
    try:
        counts = merged(records_of(files))
    except (OSError, ValueError) as error:
        print(f"coverage.py: {error}", file=sys.stderr)
        return 2
    print("\n".join(report(counts)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
