"""The README's section of recorded GPU results, between two comments: python -m recording.readme writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from recording.source_tree import README, recorded_folder
from recording.tables import CPU, RecordedTable, read_tables, recorded_devices, recorded_experiments

BEGIN = "<!-- recorded GPU results: tools/record writes what follows -->"
END = "<!-- end of recorded GPU results -->"

NOTHING = """\
No GPU has run these experiments yet, so there are no figures of one. `tools/gpu-check --results` on a machine with a GPU
makes them, records them under `experiments/recorded`, and puts the tables here."""  # noqa: E501

INTRODUCTION = """\
Results of `tools/gpu-check --results` at `--size full`, beside the CPU's at its own smaller sizes, and what the paper
reports: means over the seeds, with their 95 % intervals. The figures are those of the `summary.json` beside the
`report.txt` named above each table."""


def readme_section(folder: Path) -> str:
    """What stands between the two comments."""
    devices = [device for device in recorded_devices(folder) if device != CPU]
    if not devices:
        return NOTHING
    names = dict.fromkeys(name for device in devices for name in recorded_experiments(folder, device))
    return "\n\n".join([INTRODUCTION, *(_experiment(folder, name) for name in names)])


def _experiment(folder: Path, name: str) -> str:
    tables = read_tables(folder, name)
    files = ", ".join(f"`experiments/recorded/{table.device}/{name}/report.txt`" for table in tables)
    return f"**{name}** ({tables[0].metric}; {files}). Paper: {tables[0].paper}\n\n{_table(tables)}"


def _table(tables: list[RecordedTable]) -> str:
    """An arm per line: its outcome on every device, then speed and memory on those that are no CPU."""
    speeds = [(table, column) for table in tables if table.device != CPU for column in table.columns]
    arms = dict.fromkeys(arm for table in reversed(tables) for arm in table.arms)
    rows = [["arm", *(table.device for table in tables), *(f"{column}, {table.device}" for table, column in speeds)]]
    for arm in arms:
        cells = [table.outcome(arm) for table in tables] + [table.cell(arm, column) for table, column in speeds]
        rows.append([arm, *(cell or "-" for cell in cells)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append("    " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def update_readme(readme: Path, folder: Path) -> None:
    """Writes the section anew. Raises ValueError where the README lacks the two comments."""
    text = readme.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{readme}: it lacks the comments {BEGIN} and {END}")
    readme.write_text(f"{before}{BEGIN}\n\n{readme_section(folder)}\n\n{END}{after}", encoding="utf-8")


def main() -> int:
    try:
        update_readme(README, recorded_folder())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
