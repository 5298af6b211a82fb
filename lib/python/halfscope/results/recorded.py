"""The experiments under experiments/recorded, by device: what the summary of each says of its arms, as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from halfscope.results.arms import Arm, metric_digits, read_arms, read_summary
from halfscope.results.packed import is_packed, read_packed_runs

CPU = "cpu"  # the device that stands first
SPEED, MEMORY = "ms/step", "peak MiB"


@dataclass(frozen=True)
class RecordedTable:
    """The arms of one experiment on one device."""

    device: str
    experiment: str
    metric: str  # with its unit: "test accuracy %"
    paper: str  # result in "Mixed Precision Training"
    digits: int  # decimals of the metric
    arms: dict[str, Arm]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of speed and memory, if the device tells them."""
        return tuple(name for name in (SPEED, MEMORY) if any(self.cell(arm, name) for arm in self.arms))

    def outcome(self, arm: str) -> str:
        """'63.96 (62.10 .. 65.82)', 'diverged 3 of 3', or nothing where the arm was not run."""
        line = self.arms.get(arm)
        if line is None:
            return ""
        mean = "" if line.mean is None else self._number(line.mean)
        interval = ""
        if line.low is not None and line.high is not None:
            interval = f"({self._number(line.low)} .. {self._number(line.high)})"
        diverged = f"diverged {line.diverged} of {line.seeds}" if line.diverged else ""
        return " ".join(part for part in (mean, interval, diverged) if part)

    def cell(self, arm: str, column: str) -> str:
        """Speed or memory of an arm; nothing where it was not run or the summary does not say."""
        line = self.arms.get(arm)
        if line is None:
            return ""
        if column == SPEED:
            return "" if line.seconds_per_step is None else f"{1000 * line.seconds_per_step:.1f}"
        return "" if line.peak_device_bytes is None else f"{line.peak_device_bytes / 2**20:.0f}"

    def _number(self, value: float) -> str:
        return f"{value:.{self.digits}f}"


def recorded_devices(folder: Path) -> list[str]:
    """The CPU first, then by name."""
    found = {path.parent.parent.name for path in folder.glob("*/*/summary.json")}
    return sorted(found, key=lambda name: (name != CPU, name))


def recorded_experiments(folder: Path, device: str) -> list[str]:
    return sorted(path.parent.name for path in (folder / device).glob("*/summary.json"))


def read_tables(folder: Path, experiment: str) -> list[RecordedTable]:
    """The table of `experiment` on every device that has it."""
    folders = [folder / device / experiment for device in recorded_devices(folder)]
    return [read_table(path) for path in folders if (path / "summary.json").exists()]


def read_table(folder: Path) -> RecordedTable:
    """The table of the recorded experiment in `folder`. Raises ValueError, naming the file, without a whole summary."""
    summary = read_summary(folder)
    configs: dict[str, dict] = {}
    for run in read_packed_runs(folder) if is_packed(folder) else ():
        configs.setdefault(run.arm, run.config)
    arms = read_arms(summary, configs)
    return RecordedTable(
        device=folder.parent.name,
        experiment=folder.name,
        metric=f"{summary['metric']} {summary['unit']}".strip(),
        paper=summary["paper"],
        digits=metric_digits(summary["unit"], arms),
        arms={arm.name: arm for arm in arms},
    )
