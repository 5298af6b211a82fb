"""Where a notebook's results come from: a folder that is there already, or a quick run made on the spot."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from halfscope.results import Experiment, read_experiment

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build" / "release" / "experiments" / "halfscope"


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
