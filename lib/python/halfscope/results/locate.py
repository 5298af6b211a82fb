"""The notebooks' results: a folder that is there already, or a quick run made on the spot; and the recorded ones.

Both are looked for from the current folder upwards, so that notebooks run wherever the package is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from halfscope.program import program
from halfscope.results.experiment import Experiment, read_experiment
from halfscope.results.recorded import CPU, read_tables

RECORDED = Path("experiments", "recorded")


def find_or_run(name: str) -> Experiment:
    """The experiment `name` from HALFSCOPE_RESULTS if that is set, else from the nearest results/ or results/quick.

    The folders are those of the current folder, then of the ones above. Where none has it, a quick run is made first,
    into results/quick; FileNotFoundError without a program to make it with.
    """
    chosen = os.environ.get("HALFSCOPE_RESULTS")
    if chosen:
        return read_experiment(Path(chosen) / name)
    for base in _upwards():
        for folder in (base / "results", base / "results" / "quick"):
            if (folder / name / "summary.json").exists():
                return read_experiment(folder / name)
    return read_experiment(_run_quickly(name))


def _upwards() -> Iterator[Path]:
    here = Path.cwd()
    return iter((here, *here.parents))


def _run_quickly(name: str) -> Path:
    """Trains one seed, into the folder that has results already, or beside the notebooks, else here."""
    base = next(
        (base for base in _upwards() if (base / "results").is_dir() or (base / "notebooks").is_dir()), Path.cwd()
    )
    folder = base / "results" / "quick"
    subprocess.run([_program(name), "run", name, "--quick", "--out", folder, "--resume"], check=True)
    return folder / name


def _program(name: str) -> Path | str:
    try:
        return program()
    except FileNotFoundError as error:
        found = shutil.which("halfscope")
        if found is None:
            missing = f"no results of {name} in a folder results/ here or above, and no program to make them with"
            raise FileNotFoundError(f"{missing} ({error}); HALFSCOPE_RESULTS names a folder of results") from None
        return found


def recorded_frame(experiment: str, folder: Path | None = None) -> pd.DataFrame:
    """The recorded arms of `experiment`, a column per device with its outcome, of GPUs with speed and memory too.

    As text; empty, with a warning, where nothing is recorded. folder: HALFSCOPE_RECORDED by default, else the nearest
    experiments/recorded of the current folder and the ones above.
    """
    folder = folder or _recorded_folder()
    tables = read_tables(folder, experiment) if folder else []
    if not tables:
        where = f"in {folder}" if folder else f"in a folder {RECORDED} here or above; HALFSCOPE_RECORDED names one"
        warnings.warn(f"nothing is recorded of {experiment} {where}", stacklevel=2)
    columns: dict[str, dict[str, str]] = {}
    for table in tables:
        columns[f"{table.metric}, {table.device}"] = {arm: table.outcome(arm) for arm in table.arms}
        if table.device == CPU:
            continue
        for name in table.columns:
            columns[f"{name}, {table.device}"] = {arm: table.cell(arm, name) for arm in table.arms}
    return pd.DataFrame(columns).fillna("").rename_axis("arm")


def _recorded_folder() -> Path | None:
    chosen = os.environ.get("HALFSCOPE_RECORDED")
    if chosen:
        return Path(chosen)
    return next((base / RECORDED for base in _upwards() if (base / RECORDED).is_dir()), None)
