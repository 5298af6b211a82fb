"""Copies finished results into a folder small enough to commit: tables, configs, environments, ends of the histograms.

Checkpoints and the steps between are left out, and the histograms of an experiment that has too many to commit.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from halfscope.results.json_files import read_json, read_json_lines

RUN_FILES = ("config.json", "environment.json", "summary.json")
MOST_HISTOGRAMS = 1 << 20  # bytes of an experiment's, beyond which they are left out


def record_results(results: Path, destination: Path, program: Path, names: Sequence[str] = ()) -> list[str]:
    """Copies experiments of `results` into `destination`, with the table of each as `program` (halfscope) prints it.

    names: of the experiments; none: all. What `destination` held of them is replaced.

    Returns the experiments' names. Raises ValueError, and writes nothing, where there are none, where a run is not
    DONE, and for runs of different machines or revisions: a record speaks for one of each.
    """
    found = sorted(path.parent for path in results.glob("*/summary.json"))
    experiments = [folder for folder in found if not names or folder.name in names]
    if not experiments:
        raise ValueError(f"{results}: no results here; give the folder that halfscope run wrote to")
    _require_one_environment(results, experiments)
    destination.mkdir(parents=True, exist_ok=True)
    for experiment in experiments:
        with tempfile.TemporaryDirectory(dir=destination) as folder:
            made = Path(folder) / "made"
            _record_experiment(experiment, made)
            (made / "report.txt").write_text(_report(program, experiment), encoding="utf-8")
            shutil.rmtree(destination / experiment.name, ignore_errors=True)
            made.rename(destination / experiment.name)
    return [experiment.name for experiment in experiments]


def folder_size(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _report(program: Path, experiment: Path) -> str:
    done = subprocess.run([program, "report", experiment], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return done.stdout


def _runs(experiment: Path) -> list[Path]:
    return sorted(path.parent for path in experiment.glob("*/seed*/config.json"))


def _require_one_environment(results: Path, experiments: list[Path]) -> None:
    first: tuple[Path, dict] | None = None
    for experiment in experiments:
        for run in _runs(experiment):
            status = (run / "status").read_text().split()
            if status[:1] != ["DONE"]:
                raise ValueError(f"{run}: {' '.join(status) or 'no status'}; finish it with --resume first")
            environment = read_json(run / "environment.json")
            first = first or (run, environment)
            for key in sorted(environment.keys() | first[1].keys()):
                if environment.get(key) != first[1].get(key):
                    raise ValueError(
                        f"{run}: its {key} is {environment.get(key)!r}, that of {first[0].relative_to(results)} "
                        f"{first[1].get(key)!r}; a record speaks for one machine and one revision"
                    )


def _record_experiment(experiment: Path, made: Path) -> None:
    made.mkdir()
    shutil.copy(experiment / "summary.json", made)
    if "harm" in read_json(experiment / "summary.json"):
        return  # hundreds of runs, whose summary holds a line of each
    histograms = {}
    for run in _runs(experiment):
        folder = made / run.relative_to(experiment)
        folder.mkdir(parents=True)
        for name in RUN_FILES:
            shutil.copy(run / name, folder)
        histograms[folder] = "".join(json.dumps(line) + "\n" for line in _ends(run / "histograms.jsonl"))
    if sum(map(len, histograms.values())) <= MOST_HISTOGRAMS:
        for folder, lines in histograms.items():
            (folder / "histograms.jsonl").write_text(lines)


def _ends(path: Path) -> list[dict]:
    """The histograms of the first and of the last observed step."""
    lines = list(read_json_lines(path)) if path.exists() else []
    steps = {line["step"] for line in lines}
    return [line for line in lines if line["step"] in (min(steps), max(steps))]


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        print("usage: python -m recording.copy_results RESULTS DESTINATION PROGRAM", file=sys.stderr)
        return 2
    try:
        results, destination, program = map(Path, arguments)
        for name in record_results(results, destination, program):
            print(name)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
