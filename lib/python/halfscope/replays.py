"""A recorded run under other loss scalers, side by side: `halfscope.replay`, and the scalers by name."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

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
        with the scale in it; a "histogram" beside it is a record of histograms.jsonl or a halfscope.Histogram.
    scalers: names as LossScaler takes them, numbers for constant scales, or "all", which leaves out those that look at
        histograms where the trace has none (with a warning).
    options: set in the scalers that have them.

    Raises ValueError for an unknown scaler, an option that none of them has, a value out of range, a trace without
    steps, and with file and line for one that is not as above.
    """
    given = [scalers] if isinstance(scalers, (str, int, float)) else list(scalers)
    names, leaves_out = _core.scalers_to_replay([str(name) for name in given])
    candidates = _candidates(names, options)
    steps: list[int] = []
    not_finite = 0

    def take(step: _core.TraceStep) -> None:
        nonlocal candidates, not_finite
        if leaves_out and not steps and not step.has_histogram:
            candidates = _without_histograms(candidates)
        steps.append(step.step)
        not_finite += not step.finite
        for candidate in candidates:
            candidate.replay.step(step)

    _read_trace(trace, take)
    if not steps:
        raise ValueError("replay: there is no step in the trace")
    return Replay(tuple(steps), not_finite, tuple(map(_run, candidates)))


def list_scalers() -> pd.DataFrame:
    """The loss scalers by name.

    Columns: summary; needs, what of the gradients they look at; replays, whether a trace holds what they look at;
    options with their defaults.
    """
    return frame(_core.scaler_table()).set_index("scaler")


class _Candidate(NamedTuple):
    """A scaler and its way through the trace."""

    scaler: _core.LossScaler
    replay: _core.ScalerReplay


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


def _candidates(names: list[str], options: dict[str, float]) -> list[_Candidate]:
    known = [set(_core.LossScaler(name).options) for name in names]
    for option in options:
        if not any(option in own for own in known):
            raise ValueError(f"replay: {option}: none of the scalers has this option")
    scalers = [
        _core.LossScaler(name, **{key: value for key, value in options.items() if key in own})
        for name, own in zip(names, known)
    ]
    return [_Candidate(scaler, _core.ScalerReplay(scaler)) for scaler in scalers]


def _without_histograms(candidates: list[_Candidate]) -> list[_Candidate]:
    for scaler, _ in candidates:
        if scaler.needs == "histogram":
            warnings.warn(f"replay: leaving out {scaler.name}: the trace has no histograms", stacklevel=5)
    return [candidate for candidate in candidates if candidate.scaler.needs != "histogram"]


def _run(candidate: _Candidate) -> ScalerRun:
    replayed = candidate.replay
    scales = tuple(math.log2(scale) for scale in replayed.scales)
    return ScalerRun(
        scaler=candidate.scaler.name,
        skipped=len(replayed.overflows) if replayed.skips else 0,
        overflowed=len(replayed.overflows),
        flushed=replayed.flushed,
        final_scale_log2=scales[-1],
        first_at_final_scale=replayed.first_at_final_scale,
        stopped=replayed.stopped,
        overflow_steps=tuple(replayed.overflows),
        scale_log2=scales,
    )
