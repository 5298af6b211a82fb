"""A recorded run under other loss scalers, side by side: `halfscope.replay`."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from halfscope import _core
from halfscope.reporting import Report, Reported, finding_of_verdict
from halfscope.results.dataframes import frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

LOG_COLUMNS = ("gradients", "first_unsure")
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
    scale_log2: tuple[float, ...]  # scale of each step, until it stopped
    gradients: str | None = None  # for a log: "any", or the "least" or "greatest" that it allows
    first_unsure: int | None = None  # for a log: the first step at which the gradients in between decide

    @property
    def label(self) -> str:
        return f"{self.scaler}, {self.gradients}" if self.gradients in ("least", "greatest") else self.scaler


@dataclass(frozen=True)
class LogNotes:
    """Steps of a training as its log tells them, and the gaps that it leaves."""

    format: str  # deepspeed, megatron, hf_trainer, csv, scalars, ...
    step_count: int  # from the first to the last
    unsure_steps: int  # skipped steps of which lines leave open which ones they were: taken as the first possible ones
    unsure_scales: int  # skipped steps whose scale is inferred from the lines around them
    missing: int  # skipped steps that have no line: left out
    bar_total: int  # total of the progress bar that counts steps; 0 where lines do
    unknown_steps: int  # in holes between lines, or where an attempt broke off
    skipped_in_holes: int  # at least: the scale has fallen there
    uncounted: int  # skipped steps that the log's own counter leaves out
    hidden_skips: int  # at most: no line counts them, and the scale falls by more halvings than there are steps
    counts_steps: bool  # False: only the skipped steps are there, numbered one by one
    has_scaler: bool  # False: the scale is 1 throughout, or there is none
    ended: int | None  # the step whose overflow at the smallest scale ended the run
    lost_from: int | None  # the first step that was not finite and not skipped
    skipped_at_least: int
    skipped_at_most: int | None  # None: steps are not counted, or no scaler is seen
    skipped_at_most_by_pytorch: int | None  # by its scaler with its defaults; None where lines count skips
    open_steps: int  # no line tells whether they were skipped
    lines: list[int]  # the first and the last that were read
    cut_line: int | None  # the last, where it has no end: left out
    stopped_line: int | None  # with an exception that ended the run
    restart_line: int | None  # before it a restart may lie that no count shows: skips before it may stand twice
    notes: list[str]  # names that were read, and what was left out
    verdict: str  # meaning of the run, in a sentence or two
    recorded: dict  # the recorded run itself: skipped, overflow_steps, scale_log2, ..., reproduced_by


@dataclass(frozen=True, repr=False)
class Replay(Reported):
    """Replays of several loss scalers over one recorded run.

    The gradients are taken to be the recorded ones but for their scale; a step overflows where max|g| S is 65520 or
    more.
    """

    steps: tuple[int, ...]
    not_finite: int  # steps that were recorded so
    runs: tuple[ScalerRun, ...]
    log: LogNotes | None = None  # where they are replayed over a log

    @property
    def report(self) -> Report:
        """Meaning of a log's run, as `halfscope replay` prints it; empty for a trace."""
        words = "" if self.log is None else self.log.verdict
        return Report("replay", (finding_of_verdict("skips", words, self.log),) if words else (), text=words)

    def to_pandas(self) -> pd.DataFrame:
        """A row per run: the fields of ScalerRun that are one number each. Raises ImportError without pandas."""
        names = COLUMNS if self.log is None else (*COLUMNS, *LOG_COLUMNS)
        rows = [[run.scaler, *(getattr(run, name) for name in names)] for run in self.runs]
        found = frame(rows, columns=["scaler", *names]).set_index("scaler")
        return found.astype({"flushed": float, "stopped": object})

    @property
    def scale_log2(self) -> pd.DataFrame:
        """log2 of the scale: a row per step, a column per run; NaN after a scaler would have ended the run."""
        rows = len(self.steps)
        columns = {run.label: [*run.scale_log2, *[math.nan] * (rows - len(run.scale_log2))] for run in self.runs}
        return frame(columns, index=self.steps).rename_axis("step")

    def to_dict(self) -> dict:
        """The object that `halfscope replay --json` prints of the same trace."""
        scalers = [
            {
                **vars(run), "overflow_steps": list(run.overflow_steps), "scale_log2": list(run.scale_log2),
            }
            for run in self.runs
        ]  # fmt: skip
        if self.log is not None:
            notes = vars(self.log).copy()
            head = {"log": notes.pop("format"), "steps": notes.pop("step_count"), "not_finite": self.not_finite}
            return {**head, **notes, "step_numbers": list(self.steps), "scalers": scalers}
        for run in scalers:
            for name in LOG_COLUMNS:
                del run[name]
        return {"steps": len(self.steps), "not_finite": self.not_finite, "scalers": scalers}

    def plot(self) -> Figure:
        """log2 of every scaler's scale over the steps, with the steps that overflow."""
        from halfscope.plotting.replays import replayed_scales

        return replayed_scales(self)

    def __repr__(self) -> str:
        return f"<Replay of {len(self.steps)} steps under {', '.join(run.scaler for run in self.runs)}>"


def replay(
    trace: str | os.PathLike | Iterable[dict],
    scalers: str | float | Iterable[str | float] = (),
    *,
    columns: str = "",
    **options: float,
) -> Replay:
    """Takes loss scalers through a recorded run, without training.

    trace: the path of a run's metrics.jsonl, or of any file with a line {"step": 1, "scale": 65536, "gradients":
        {"finite": true, "max_abs": 12.5}} per step; or the dictionaries themselves. max_abs is of all weight gradients,
        with the scale in it; a "histogram" beside it is a record of histograms.jsonl or a halfscope.Histogram of FP16.
        Or the path of any log with steps, and loss scales or gradient norms: as a trainer printed it, CSV, JSON lines,
        or an event file of TensorBoard. It holds no gradients: of a scaler that it does not decide there are two runs,
        with the least and the greatest gradients that it allows.
    scalers: names as LossScaler takes them, numbers for constant scales, and "all", which leaves out those that look at
        histograms where the trace has none, and at magnitudes where it is a log (with a warning). A
        log without them is told alone, with its verdict.
    columns: names in a log that stand for step, loss_scale, grad_norm and loss: "step=iter,loss_scale=lg_scale:log2".
    options: set in the scalers that have them.

    Raises ValueError for an unknown scaler, an option that none of them has, a value out of range, a trace without
    steps, and with file and line for one that is not as above.
    """
    given = [scalers] if isinstance(scalers, (str, int, float)) else list(scalers)
    names = [str(name) for name in given]
    replayed = _core.TraceReplay(names, options)
    log = _read_trace(trace, replayed.step, columns)
    if log is not None:
        return _replay_log(log, _core.SkipLogReplay(names, options))
    if not replayed.steps:
        raise ValueError("replay: there is no step in the trace")
    if not names:
        raise ValueError("replay: a trace needs scalers, such as 'dynamic' or 'all'; a log alone has a verdict without")
    for name in replayed.left_out:
        warnings.warn(f"replay: leaving out {name}: the trace has no histograms", stacklevel=2)
    return Replay(tuple(replayed.steps), replayed.not_finite, _runs(replayed))


def _replay_log(log: _core.SkipLog, replayed: _core.SkipLogReplay) -> Replay:
    replayed.take(log)
    for name in replayed.left_out:
        warnings.warn(f"replay: leaving out {name}: a log does not hold the gradients' magnitudes", stacklevel=3)
    notes = LogNotes(**{field.name: getattr(log, field.name) for field in fields(LogNotes)})
    return Replay(tuple(replayed.steps), log.skipped, _runs(replayed), notes)


def _runs(replayed: _core.TraceReplay | _core.SkipLogReplay) -> tuple[ScalerRun, ...]:
    return tuple(ScalerRun(**run, final_scale_log2=run["scale_log2"][-1]) for run in replayed.runs())


def _read_trace(
    trace: str | os.PathLike | Iterable[dict], take: Callable[[_core.TraceStep], None], columns: str
) -> _core.SkipLog | None:
    if isinstance(trace, dict):
        raise TypeError("replay: give a path, or a list of a dictionary per step, not one dictionary")
    if isinstance(trace, (str, os.PathLike)):
        return _core.read_trace(os.fspath(trace), take, columns)
    for number, record in enumerate(trace, start=1):
        try:
            step = _core.trace_step(record)
        except ValueError as error:
            raise ValueError(f"record {number}: {error}") from None
        take(step)
    return None
