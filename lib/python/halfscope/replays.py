"""A recorded run under other loss scalers, side by side: `halfscope.replay`."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfscope import _core
from halfscope.results.dataframes import frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

COLUMNS = ("skipped", "overflowed", "flushed", "final_scale_log2", "first_at_final_scale", "stopped")


@dataclass(frozen=True)
class ScalerRun:
    """Replay of one scaler."""

    scaler: str
    skipped: int  # steps: those that overflow, where the scaler looks at overflow
    overflowed: int  # steps
    flushed: float | None  # mean share of the nonzero weight gradients; None without histograms
    final_scale_log2: float
    first_at_final_scale: int  # the first step that had that scale
    stopped: str | None  # why the scaler would have ended the run
    overflow_steps: tuple[int, ...]
    scale_log2: tuple[float, ...]  # of each step, until it stopped


@dataclass(frozen=True, repr=False)
class Replay:
    """Replays of several loss scalers over one recorded run.

    The gradients are taken to be the recorded ones but for their scale; a step overflows where max|g| S is 65520 or
    more.
    """

    steps: tuple[int, ...]
    not_finite: int  # steps that were recorded so
    runs: tuple[ScalerRun, ...]

    def to_pandas(self) -> pd.DataFrame:
        """A row per scaler: the fields of ScalerRun that are one number each. Raises ImportError without pandas."""
        rows = [[run.scaler, *(getattr(run, name) for name in COLUMNS)] for run in self.runs]
        found = frame(rows, columns=["scaler", *COLUMNS]).set_index("scaler")
        return found.astype({"flushed": float, "stopped": object})

    @property
    def scale_log2(self) -> pd.DataFrame:
        """log2 of the scale: a row per step, a column per scaler; NaN after a scaler would have ended the run."""
        rows = len(self.steps)
        columns = {run.scaler: [*run.scale_log2, *[math.nan] * (rows - len(run.scale_log2))] for run in self.runs}
        return frame(columns, index=self.steps).rename_axis("step")

    def to_dict(self) -> dict:
        """The object that `halfscope replay --json` prints of the same trace."""
        scalers = [
            {
                **vars(run), "overflow_steps": list(run.overflow_steps), "scale_log2": list(run.scale_log2),
            }
            for run in self.runs
        ]  # fmt: skip
        return {"steps": len(self.steps), "not_finite": self.not_finite, "scalers": scalers}

    def plot(self) -> Figure:
        """log2 of every scaler's scale over the steps, with the steps that overflow."""
        from halfscope.plotting.replays import replayed_scales

        return replayed_scales(self)

    def __repr__(self) -> str:
        return f"<Replay of {len(self.steps)} steps under {', '.join(run.scaler for run in self.runs)}>"


def replay(
    trace: str | os.PathLike | Iterable[dict], scalers: str | float | Iterable[str | float], **options: float
) -> Replay:
    """Takes loss scalers through a recorded run, without training.

    trace: the path of a run's metrics.jsonl, or of any file with a line {"step": 1, "scale": 65536, "gradients":
        {"finite": true, "max_abs": 12.5}} per step; or the dictionaries themselves. max_abs is of all weight gradients,
        with the scale in it; a "histogram" beside it is a record of histograms.jsonl or a halfscope.Histogram of FP16.
    scalers: names as LossScaler takes them, numbers for constant scales, or "all", which leaves out those that look at
        histograms where the trace has none (with a warning).
    options: set in the scalers that have them.

    Raises ValueError for an unknown scaler, an option that none of them has, a value out of range, a trace without
    steps, and with file and line for one that is not as above.
    """
    given = [scalers] if isinstance(scalers, (str, int, float)) else list(scalers)
    replayed = _core.TraceReplay([str(name) for name in given], options)
    _read_trace(trace, replayed.step)
    if not replayed.steps:
        raise ValueError("replay: there is no step in the trace")
    for name in replayed.left_out:
        warnings.warn(f"replay: leaving out {name}: the trace has no histograms", stacklevel=2)
    runs = [ScalerRun(**run, final_scale_log2=run["scale_log2"][-1]) for run in replayed.runs()]
    return Replay(tuple(replayed.steps), replayed.not_finite, tuple(runs))


def _read_trace(trace: str | os.PathLike | Iterable[dict], take: Callable[[_core.TraceStep], None]) -> None:
    if isinstance(trace, dict):
        raise TypeError("replay: give a path, or a list of a dictionary per step, not one dictionary")
    if isinstance(trace, (str, os.PathLike)):
        _core.read_trace(os.fspath(trace), take)
        return
    for number, record in enumerate(trace, start=1):
        try:
            step = _core.trace_step(record)
        except ValueError as error:
            raise ValueError(f"record {number}: {error}") from None
        take(step)
