"""Finished runs of any number of folders as one data frame, with the settings in which they differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from halfscope.results.dataframes import frame
from halfscope.results.experiment import read_results
from halfscope.results.run import Run

if TYPE_CHECKING:
    import pandas as pd

SUMMARY = ("metric", "train_loss", "diverged", "diverged_step", "skipped", "lost_updates", "final_scale")
SHARES = ("flushed", "would_flush", "subnormal", "overflow")
OF_THE_RUN = ("format_version", "experiment", "arm", "seed", "data", "device")


def runs_frame(*folders: Path | str) -> pd.DataFrame:
    """A row per finished run: folder, experiment, arm, seed, each setting in which the runs differ, and the results.

    folders: of results, or of experiments. flushed, subnormal and overflow are shares of the non-zero elements of the
    observed gradients; an FP32 arm has would_flush instead of flushed, the share that a cast would flush. Raises
    ValueError, naming the folder or the file, where there are no results to read.
    """
    found = [
        (folder, experiment.name, arm, run)
        for folder in folders
        for experiment in read_results(folder)
        for arm in experiment.arms
        for run in experiment.runs[arm.name]
    ]
    varied = _varied([run for *_, run in found])
    rows = [
        {"folder": str(folder), "experiment": experiment, "arm": arm.name, "seed": run.seed}
        | {key: run.settings.get(key) for key in varied}
        | {key: run.summary.get(key) for key in SUMMARY}
        | _shares(run.summary.get("gradients") or {}, "would_flush" if arm.in_fp32 else "flushed")
        for folder, experiment, arm, run in found
    ]
    return frame(rows)


def _varied(runs: list[Run]) -> list[str]:
    """Settings that are not the same in all runs, in the order of their config.json."""
    keys = dict.fromkeys(key for run in runs for key in run.settings if key not in OF_THE_RUN)
    return [key for key in keys if any(run.settings.get(key) != runs[0].settings.get(key) for run in runs)]


def _shares(gradients: dict, flushed: str) -> dict[str, float | None]:
    """Shares by outcome, the flushed elements in the column `flushed`; the other columns of SHARES are empty."""
    nonzero = gradients.get("nonzero")
    columns = {flushed: "flushed", "subnormal": "subnormal", "overflow": "overflow"}
    shares = {column: gradients[key] / nonzero if nonzero else None for column, key in columns.items()}
    return {column: shares.get(column) for column in SHARES}
