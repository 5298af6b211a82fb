"""Run folders as values: experiments, arms, runs, their records as data frames, and recorded histograms.

Each name is loaded where it is first asked for, so that reading a summary needs neither NumPy nor pandas.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from halfscope.results.arms import Arm, JudgedArms, Prediction
    from halfscope.results.experiment import Experiment, read_experiment, read_results
    from halfscope.results.histogram import RecordedHistogram
    from halfscope.results.locate import find_or_run, recorded_frame
    from halfscope.results.run import Run
    from halfscope.results.run_table import runs_frame

__all__ = [
    "Arm",
    "Experiment",
    "JudgedArms",
    "Prediction",
    "RecordedHistogram",
    "Run",
    "find_or_run",
    "read_experiment",
    "read_results",
    "recorded_frame",
    "runs_frame",
]

_MODULES = {
    "Arm": "arms",
    "JudgedArms": "arms",
    "Prediction": "arms",
    "RecordedHistogram": "histogram",
    "Run": "run",
    "find_or_run": "locate",
    "recorded_frame": "locate",
    "runs_frame": "run_table",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'halfscope.results' has no attribute '{name}'")
    return getattr(import_module(f"halfscope.results.{_MODULES.get(name, 'experiment')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
