"""The tables under experiments/recorded: of every device that results were recorded on, as the program printed them.

Every cell is what stands in a report.txt, character for character, so that a figure can be traced to its file.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CPU = "cpu"  # the device that stands first


@dataclass(frozen=True)
class RecordedTable:
    """The arms of one experiment on one device: by arm and column the text of the cell."""

    device: str
    experiment: str
    path: Path
    columns: tuple[str, ...]  # without the first, which is the arm's name
    rows: dict[str, dict[str, str]]

    @property
    def metric(self) -> str:
        """The column that the arms are judged by."""
        return self.columns[1]

    def outcome(self, arm: str) -> str:
        """'63.96 (62.10 .. 65.82)', 'diverged 3 of 3', or nothing where the arm was not run."""
        if arm not in self.rows:
            return ""
        row = self.rows[arm]
        diverged = "" if row["diverged"] == "-" else f"diverged {row['diverged']}"
        interval = "" if row["95 % interval"] == "-" else f"({row['95 % interval']})"
        mean = "" if row[self.metric] == "-" else row[self.metric]
        return " ".join(part for part in (mean, interval, diverged) if part)

    def cell(self, arm: str, column: str) -> str:
        return self.rows.get(arm, {}).get(column, "")


def recorded_folder() -> Path:
    """Of this source tree, or what HALFSCOPE_RECORDED names."""
    return Path(os.environ.get("HALFSCOPE_RECORDED") or ROOT / "experiments/recorded")


def recorded_devices(folder: Path) -> list[str]:
    """The CPU first, then by name."""
    found = {path.parents[1].name for path in folder.glob("*/*/report.txt")}
    return sorted(found, key=lambda name: (name != CPU, name))


def recorded_experiments(folder: Path, device: str) -> list[str]:
    return sorted(path.parent.name for path in (folder / device).glob("*/report.txt"))


def read_tables(folder: Path, experiment: str) -> list[RecordedTable]:
    """The table of `experiment` on every device that has it."""
    paths = [folder / device / experiment / "report.txt" for device in recorded_devices(folder)]
    return [read_table(path) for path in paths if path.exists()]


def read_table(path: Path) -> RecordedTable:
    """Raises ValueError, with the file's name, where there is no table of arms in it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith("  arm ")), None)
    if start is None:
        raise ValueError(f"{path}: no table of arms in it; tools/record writes one")
    head = _cells(lines[start])
    rows = {}
    for line in lines[start + 1 :]:
        cells = _cells(line)
        if len(cells) != len(head):
            break
        rows[cells[0]] = dict(zip(head[1:], cells[1:]))
    return RecordedTable(path.parents[1].name, path.parent.name, path, tuple(head[1:]), rows)


def paper_says(folder: Path, experiment: str) -> str:
    """What "Mixed Precision Training" reports, as the experiment's summary has it."""
    path = next(folder.glob(f"*/{experiment}/summary.json"))
    return json.loads(path.read_text(encoding="utf-8"))["paper"]


def _cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())
