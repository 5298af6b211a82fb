"""Packs finished results into a folder small enough to commit: one file of runs and one of histograms per experiment.

Checkpoints and the steps between are left out, and histograms that are too many to commit.
"""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from halfscope.results.curves import loss_curve, zero_causes
from halfscope.results.json_files import FORMAT_VERSION, read_json, read_json_lines
from halfscope.results.packed import ENVIRONMENT, HISTOGRAMS, RUNS

# Compressed bytes of an experiment's histograms, beyond which those of the arms that others are compared with are kept
# alone, and none where these are too many as well; all where the arms' counters are predicted from them.
MOST_HISTOGRAMS = 256 << 10
OF_DATA = "data_"  # keys of an environment that only runs on some data sets have


class RunFolder(NamedTuple):
    """A run's folder, EXPERIMENT/ARM/seedK."""

    arm: str
    seed: int
    path: Path


def record_results(results: Path, destination: Path, program: Path, names: Sequence[str] = ()) -> list[str]:
    """Packs experiments of `results` into `destination`; `program` (halfscope) makes the summary and report of each.

    names: the experiments; none: all. Files of theirs in `destination` are replaced.

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
            made = Path(folder) / experiment.name
            made.mkdir()
            _record_experiment(experiment, made, program)
            shutil.rmtree(destination / experiment.name, ignore_errors=True)
            made.rename(destination / experiment.name)
    return [experiment.name for experiment in experiments]


def folder_size(folder: Path) -> int:
    """Bytes of all files."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _run_folders(experiment: Path) -> list[RunFolder]:
    """The runs in the order of the summary's arms, then of their seeds."""
    arms = [line["arm"] for line in read_json(experiment / "summary.json")["arms"]]
    paths = [(arm, path.parent) for arm in arms for path in experiment.joinpath(arm).glob("seed*/config.json")]
    runs = [RunFolder(arm, int(path.name[4:]), path) for arm, path in paths if path.name[4:].isdigit()]
    return sorted(runs, key=lambda run: (arms.index(run.arm), run.seed))


def _require_one_environment(results: Path, experiments: list[Path]) -> None:
    """Machine and revision are those of all runs; data sets differ between experiments, and between runs of one."""
    first: tuple[Path, dict] | None = None
    for experiment in experiments:
        of_data: dict[tuple[str, str], tuple[Path, Any]] = {}  # by key and data set, of the first run that has it
        for _, _, run in _run_folders(experiment):
            status = (run / "status").read_text().split()
            if status[:1] != ["DONE"]:
                raise ValueError(f"{run}: {' '.join(status) or 'no status'}; finish it with --resume first")
            environment = read_json(run / ENVIRONMENT)
            first = first or (run, environment)
            for key in sorted(environment.keys() | first[1].keys()):
                known = (first[0], first[1].get(key))
                if key.startswith(OF_DATA):
                    if key not in environment:
                        continue
                    data_set = read_json(run / "config.json").get("dataset", "")
                    known = of_data.setdefault((key, data_set), (run, environment[key]))
                if environment.get(key) != known[1]:
                    raise ValueError(
                        f"{run}: its {key} is {environment.get(key)!r}, that of {known[0].relative_to(results)} "
                        f"{known[1]!r}; a record speaks for one machine and one revision"
                    )


def _write_environment(runs: list[RunFolder], made: Path) -> None:
    """With what the runs say of their data, each once."""
    environment: dict[str, Any] = {}
    for run in runs:
        for key, value in read_json(run.path / ENVIRONMENT).items():
            known = environment.setdefault(key, value)
            if key.startswith(OF_DATA) and str(value) not in str(known).split(" | "):
                environment[key] = f"{known} | {value}"
    (made / ENVIRONMENT).write_text(json.dumps(environment, indent=2) + "\n", encoding="utf-8")


def _record_experiment(experiment: Path, made: Path, program: Path) -> None:
    summary = read_json(experiment / "summary.json")
    if "harm" in summary:  # hundreds of runs, whose summary holds a line of each
        _write_environment(_run_folders(experiment), made)
        report_of(program, "--save", experiment)  # by today's claims
        shutil.copy(experiment / "summary.json", made)
        (made / "report.txt").write_text(report_of(program, experiment), encoding="utf-8")
        return
    pack_experiment(experiment, made)
    report_of(program, "--save", made)


def pack_experiment(experiment: Path, made: Path) -> None:
    """Writes the environment, the runs and the ends of the histograms of `experiment` into the folder `made`."""
    predicts, runs = _predicts(experiment), _run_folders(experiment)
    _write_environment(runs, made)
    (made / RUNS).write_text("".join(map(_line, _packed_runs(experiment, runs))), encoding="utf-8")
    histograms = _histograms(runs)
    if not predicts and len(histograms) > MOST_HISTOGRAMS:
        baselines = {line.get("baseline") for line in read_json(experiment / "summary.json")["arms"]}
        histograms = _histograms([run for run in runs if run.arm in baselines])
    if histograms and (predicts or len(histograms) <= MOST_HISTOGRAMS):
        (made / HISTOGRAMS).write_bytes(histograms)


def _histograms(runs: list[RunFolder]) -> bytes:
    """Compressed lines of the runs' first and last histograms; empty where they have none."""
    lines = [_line({"arm": arm, "seed": seed, **line}) for arm, seed, path in runs for line in _ends(path)]
    return _compressed("".join(lines)) if lines else b""


def _predicts(experiment: Path) -> bool:
    """Whether its summary compares predictions from FP32's histograms with the counters of the first step."""
    return bool(read_json(experiment / "summary.json").get("predictions"))


def _packed_runs(experiment: Path, runs: list[RunFolder]) -> list[dict]:
    """The lines of runs.jsonl: settings that all runs share, then each run with its own."""
    name, predicts = read_json(experiment / "summary.json")["experiment"], _predicts(experiment)
    configs = [read_json(path / "config.json") for _, _, path in runs]
    shared = {key: value for key, value in configs[0].items() if all(_has(config, key, value) for config in configs)}
    lines = [{"format_version": FORMAT_VERSION, "experiment": name, "config": shared}]
    for (arm, seed, path), config in zip(runs, configs):
        own = {key: value for key, value in config.items() if key not in shared}
        line = {"arm": arm, "seed": seed, "config": own, "summary": read_json(path / "summary.json")}
        lines.append(line | _curves(path) | (_first_step(path) if predicts else {}))
    return lines


def _curves(run: Path) -> dict:
    """Curves for figures: the loss in a few windows, and the causes of zeros where they were counted."""
    steps = list(read_json_lines(run / "metrics.jsonl"))
    causes = zero_causes(steps)
    return {"loss_curve": loss_curve(steps)} | ({"zero_causes": causes} if causes else {})


def _has(config: dict, key: str, value: object) -> bool:
    """Whether the setting is written alike: 1 and 1.0 are equal, but not the same text."""
    return key in config and json.dumps(config[key]) == json.dumps(value)


def _first_step(run: Path) -> dict:
    """The counters that predictions are compared with; nothing where no step was logged."""
    first = next(read_json_lines(run / "metrics.jsonl"), None)
    return {} if first is None else {"first_step": {"step": first["step"], "tensors": first.get("tensors", [])}}


def _ends(run: Path) -> list[dict]:
    """The histograms of the first and of the last observed step."""
    path = run / "histograms.jsonl"
    lines = list(read_json_lines(path)) if path.exists() else []
    steps = {line["step"] for line in lines}
    return [line for line in lines if line["step"] in (min(steps), max(steps))]


def _line(value: dict) -> str:
    return json.dumps(value) + "\n"


def _compressed(text: str) -> bytes:
    """As gzip, without a time and a name: the same text gives the same bytes."""
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as file:
        file.write(text.encode("utf-8"))
    return packed.getvalue()


def report_of(program: Path, *words: str | Path) -> str:
    """The program's report, by the words behind `halfscope report`; raises ValueError with its message."""
    done = subprocess.run([program, "report", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip())
    return done.stdout


def main(arguments: list[str]) -> int:
    if len(arguments) != 3:
        print("usage: python -m recording.pack_results RESULTS DESTINATION PROGRAM", file=sys.stderr)
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
