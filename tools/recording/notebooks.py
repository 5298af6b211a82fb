"""The notebooks' results: a folder that is there already, or a quick run made on the spot; and the recorded ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pandas as pd

from halfscope.results import Experiment, read_experiment
from recording.source_tree import PROGRAM, ROOT, recorded_folder
from recording.tables import CPU, read_tables


def find_or_run(name: str) -> Experiment:
    """The experiment `name` from HALFSCOPE_RESULTS if that is set, else from results/ or results/quick.

    Where neither of the two has it, a quick run into results/quick is made first; FileNotFoundError where the program
    is not built.
    """
    chosen = os.environ.get("HALFSCOPE_RESULTS")
    if chosen:
        return read_experiment(Path(chosen) / name)
    for folder in (ROOT / "results", ROOT / "results" / "quick"):
        if (folder / name / "summary.json").exists():
            return read_experiment(folder / name)
    return read_experiment(_run_quickly(name))


def _run_quickly(name: str) -> Path:
    if not PROGRAM.exists():
        raise FileNotFoundError(f"no results, and no program at {PROGRAM} to make them with: run tools/reproduce")
    folder = ROOT / "results" / "quick"
    subprocess.run([PROGRAM, "run", name, "--quick", "--out", folder, "--resume"], check=True)
    return folder / name


def recorded_frame(experiment: str, folder: Path | None = None) -> pd.DataFrame:
    """The recorded arms of `experiment`, a column per device with its outcome, of GPUs with speed and memory too.

    As text; empty where nothing was recorded. folder: experiments/recorded by default, or HALFSCOPE_RECORDED.
    """
    columns: dict[str, dict[str, str]] = {}
    for table in read_tables(folder or recorded_folder(), experiment):
        columns[f"{table.metric}, {table.device}"] = {arm: table.outcome(arm) for arm in table.arms}
        if table.device == CPU:
            continue
        for name in table.columns:
            columns[f"{name}, {table.device}"] = {arm: table.cell(arm, name) for arm in table.arms}
    return pd.DataFrame(columns).fillna("").rename_axis("arm")
