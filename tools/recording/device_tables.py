"""Recorded results of several devices side by side: docs/dev/gpu.md's section on measured GPUs."""

from __future__ import annotations

from pathlib import Path

from halfscope.results.packed import read_packed_runs
from halfscope.results.recorded import CPU, RecordedTable, read_tables, recorded_devices, recorded_experiments
from halfscope.text_tables import aligned

NOTHING = """\
No experiment has been trained at full size on a GPU yet. `tools/gpu-check --results` on a machine with one does so,
records them under `experiments/recorded`, and puts the tables here."""

INTRODUCTION = """\
Results of `tools/gpu-check` at `--size full`, beside the CPU's at `--size small` and the paper's: means over the seeds,
with their 95 % intervals. The `report.txt` named above each table has all columns."""
SIZES = ("model", "batch", "steps")


def device_section(folder: Path) -> str:
    """A table per experiment that a GPU has run; without a GPU's record, a sentence that says so."""
    devices = [device for device in recorded_devices(folder) if device != CPU]
    if not devices:
        return NOTHING
    names = dict.fromkeys(name for device in devices for name in recorded_experiments(folder, device))
    return "\n\n".join([INTRODUCTION, *(_experiment(folder, name) for name in names)])


def _experiment(folder: Path, name: str) -> str:
    tables = read_tables(folder, name)
    sizes = "; ".join(_sizes(folder, table) for table in tables if table.device != CPU)
    files = ", ".join(f"`experiments/recorded/{table.device}/{name}/report.txt`" for table in tables)
    about = f"**{name}** ({tables[0].metric}; {files}). {sizes}. Paper: {tables[0].paper}"
    return f"{about}\n\n```text\n{_table(tables)}\n```"


def _sizes(folder: Path, table: RecordedTable) -> str:
    """'nvidia-h200: model resnet18, batch 128, steps 469', by what its runs have in common."""
    runs = read_packed_runs(folder / table.device / table.experiment)
    values = {key: sorted({str(run.config[key]) for run in runs if key in run.config}) for key in SIZES}
    words = [f"{key} {' or '.join(found)}" for key, found in values.items() if found]
    return f"{table.device}: {', '.join(words)}"


def _table(tables: list[RecordedTable]) -> str:
    """An arm per line: its outcome on every device, then speed and memory on all but the CPU."""
    speeds = [(table, column) for table in tables if table.device != CPU for column in table.columns]
    arms = dict.fromkeys(arm for table in reversed(tables) for arm in table.arms)
    rows = [["arm", *(table.device for table in tables), *(f"{column}, {table.device}" for table, column in speeds)]]
    for arm in arms:
        cells = [table.outcome(arm) for table in tables] + [table.cell(arm, column) for table, column in speeds]
        rows.append([arm, *(cell or "-" for cell in cells)])
    return aligned(rows)
