"""The experiments as `halfscope list experiments --json` has them; as a command a line for each: its name, its data.

tools/experiment_list.py PROGRAM [--all]

--all   every experiment; without it those of the quick set
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """One experiment of the program's table."""

    name: str
    data_of: dict[str, str]  # by arm: images or text
    full_arms: tuple[str, ...]
    in_quick_set: bool

    @property
    def data(self) -> list[str]:
        """The kinds of data that the arms train on."""
        return sorted(set(self.data_of.values()))


def list_experiments(program: Path | str, environment: Mapping[str, str] = os.environ) -> list[Entry]:
    """In the program's order. Raises ValueError with the program's message where it fails."""
    words = ("list", "experiments", "--json")
    done = subprocess.run([program, *words], capture_output=True, text=True, env=dict(environment))
    if done.returncode != 0:
        raise ValueError(f"halfscope {' '.join(words)}: {done.stderr.strip()}")
    return [
        Entry(
            name=entry["name"],
            data_of={arm["name"]: arm["data"] for arm in entry["arms"]},
            full_arms=tuple(entry["full_arms"]),
            in_quick_set=entry["in_quick_set"],
        )
        for entry in json.loads(done.stdout)["experiments"]
    ]


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2) or arguments[1:] not in ([], ["--all"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    try:
        experiments = list_experiments(arguments[0])
    except ValueError as error:
        print(error, file=sys.stderr)
        return 3
    for entry in experiments:
        if entry.in_quick_set or arguments[1:]:
            print(entry.name, *entry.data)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
