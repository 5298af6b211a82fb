"""Measures commands of README in a fresh clone, stage by stage, for experiments/recorded/measured.json.

    python -m recording.command_times [NAME ...]

Names are those of the file; none: all. The clone is of the landed revision, its builds use no compiler cache, and `pip`
installs into an environment of its own. A machine that is busy is refused, and so is a command that fails.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from recording.measured import FILE, CommandTimes, read_times, write_times
from recording.source_tree import ROOT, recorded_folder

# "== build_release: passed in 83 s, 160 s of processor", "== figures: 12 s".
STAGE = re.compile(r"== (?P<stage>[\w ]+): (?:passed in )?(?P<seconds>\d+) s\b")
IDLE_LOAD = 0.5  # processes that may run or wait beside the measured command
SETS = {"avx512f": "AVX-512", "avx2": "AVX2"}  # the best first
CPU_INFO = Path("/proc/cpuinfo")


def stages_of(lines: Sequence[str]) -> dict[str, float]:
    """Seconds by stage that a command printed."""
    matches = filter(None, map(STAGE.match, lines))
    return {match["stage"]: float(match["seconds"]) for match in matches}


def machine() -> dict:
    """Processor, its cores and the best of the instruction sets that the program knows."""
    info = dict(line.split(":", 1) for line in CPU_INFO.read_text().splitlines() if ":" in line)
    words = {key.strip(): value.strip() for key, value in info.items()}
    flags = words.get("flags", "").split()
    best = next((name for flag, name in SETS.items() if flag in flags), None)
    cores = len(os.sched_getaffinity(0))
    return {"cpu": words.get("model name"), "cores": cores, "instruction_set": best}


def require_idle(load: float) -> None:
    if load > IDLE_LOAD:
        raise ValueError(f"the machine is busy: {load:.1f} processes in the last minute, at most {IDLE_LOAD} may be")


def measured(command: str, root: Path) -> tuple[float, dict[str, float]]:
    """Seconds of `command`, all and by stage, in a fresh clone of the revision that `root` has.

    Its output goes on to stderr. Raises ValueError where it fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        clone, environment = Path(folder) / "clone", Path(folder) / "environment"
        subprocess.run(["git", "clone", "--quiet", root, clone], check=True)
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        path = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        lines, began = [], time.monotonic()
        with subprocess.Popen(
            ["bash", "-c", command], cwd=clone, env=_environment() | {"PATH": path}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", file=sys.stderr, flush=True)
                lines.append(line)
        seconds = time.monotonic() - began
    if process.returncode != 0:
        raise ValueError(f"{command}: exit status {process.returncode}; nothing is recorded")
    return seconds, stages_of(lines)


def _environment() -> dict[str, str]:
    """The caller's, without its packages and compiler cache."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {"CCACHE_DISABLE": "1"}


def revision(root: Path) -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def measure(names: Sequence[str], folder: Path, root: Path = ROOT) -> list[CommandTimes]:
    """Measures the commands of these names, or all, and writes each as soon as it is done.

    folder: experiments/recorded.
    """
    times = read_times(folder)
    unknown = [name for name in names if name not in times]
    if unknown:
        raise ValueError(f"{folder / FILE}: no command '{unknown[0]}'; one of {', '.join(times)}")
    require_idle(os.getloadavg()[0])
    for name in names or list(times):
        seconds, stages = measured(times[name].command, root)
        times[name] = replace(
            times[name], seconds=round(seconds), stages=stages, date=date.today().isoformat(),
            git_revision=revision(root), origin=None, **machine(),
        )  # fmt: skip
        write_times(folder, times)
    return [times[name] for name in names or list(times)]


def main(arguments: list[str]) -> int:
    try:
        for entry in measure(arguments, recorded_folder()):
            print(f"{entry.command}: {entry.minutes} minutes")
    except ValueError as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
