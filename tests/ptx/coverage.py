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


def merged(lines: Iterable[str]) -> Counts:
    """The sums of all lines; what was never reached is there with 0."""
    counts: Counts = {kind: Counter() for kind in KINDS}
    for line in lines:
        record = json.loads(line)
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


def lines_of(files: list[str]) -> Iterator[str]:
    for name in files:
        for number, line in enumerate(Path(name).read_text(encoding="utf-8").splitlines(), 1):
            if not line.endswith("}"):
                raise ValueError(f"{name}, line {number}: it is not whole")
            yield line


def main(files: list[str]) -> int:
    if not files or files[0].startswith("-"):
        print("usage: coverage.py FILE...", file=sys.stderr)
        return 2
    try:
        counts = merged(lines_of(files))
    except (OSError, ValueError, KeyError, AttributeError) as error:
        print(f"coverage.py: {error}", file=sys.stderr)
        return 2
    print("\n".join(report(counts)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
