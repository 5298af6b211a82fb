"""Measured times that pages quote, experiments/recorded/measured.json: of commands, with their stages."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from halfscope.results.json_files import read_json

FILE = "measured.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class CommandTimes:
    """How long a command of README took once. Times are wall-clock seconds."""

    name: str
    command: str
    seconds: float
    date: str
    cores: int
    stages: dict[str, float] = field(default_factory=dict)  # as the command prints them
    git_revision: str | None = None
    cpu: str | None = None
    instruction_set: str | None = None
    origin: str | None = None  # source of a figure that `tools/record --times` has not measured

    @property
    def minutes(self) -> str:
        return f"{self.seconds / 60:.{1 if self.seconds < 600 else 0}f}"

    @property
    def machine(self) -> str:
        """'2 cores of an AMD EPYC with AVX-512', as far as it is known."""
        cpu = f" of a processor {self.cpu}" if self.cpu else ""
        return f"{self.cores} idle cores{cpu}" + (f" with {self.instruction_set}" if self.instruction_set else "")


def read_times(folder: Path) -> dict[str, CommandTimes]:
    """Times of commands by name. Raises ValueError where the file is missing or of another version.

    folder: experiments/recorded.
    """
    content = read_json(folder / FILE)
    if content["format_version"] != FORMAT_VERSION:
        raise ValueError(f"{folder / FILE}: format_version {content['format_version']}, expected {FORMAT_VERSION}")
    times = [CommandTimes(**entry) for entry in content["commands"]]
    return {entry.name: entry for entry in times}


def write_times(folder: Path, times: dict[str, CommandTimes]) -> None:
    content = {"format_version": FORMAT_VERSION, "commands": [asdict(entry) for entry in times.values()]}
    (folder / FILE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def times_of(folder: Path, name: str) -> CommandTimes:
    times = read_times(folder)
    if name not in times:
        raise ValueError(f"{folder / FILE}: no command '{name}'; one of {', '.join(times)}")
    return times[name]


# Commands of README, with what each does.
INSTALL = {
    "install": "Python package and program; no wheel is published yet",
    "reproduce": "builds, runs one seed of each ablation, prints the tables, draws results/quick/report.html",
    "test": "builds, and runs the tests",
}


def install_block(folder: Path) -> str:
    """README's commands with their minutes."""
    times = [times_of(folder, name) for name in INSTALL]
    width = max(len(entry.command) for entry in times) + 6
    lines = [f"{entry.command:{width}}# {entry.minutes} minutes: {INSTALL[entry.name]}" for entry in times]
    reason = "<!-- not run: the first compiles, the others install packages, train and test for minutes -->"
    return "\n".join((reason, "```sh", *lines, "```"))


def machines_of(folder: Path, *names: str) -> str:
    """Machines and days on which commands were measured, in one text where they are the same."""
    times = [times_of(folder, name) for name in names]
    return "; ".join(dict.fromkeys(f"{entry.machine} ({entry.date})" for entry in times))
