"""The traces that loss scalers are replayed over: metrics.jsonl of a run, or the same as dictionaries."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfscope import _core

HOW_TO_RECORD = "record the run with --set record_gradients=max_abs, or histogram"
SMALLEST_SCALE = 2.0**-149


@dataclass(frozen=True)
class TraceStep:
    """What is known of a step's weight gradients, all together and with `scale` in them."""

    step: int
    scale: float
    finite: bool
    max_abs: float  # 0 where they are not finite
    histogram: _core.Histogram | None


def read_trace(trace: str | os.PathLike | Iterable[dict]) -> Iterator[TraceStep]:
    """The steps of a file of JSON lines, or of dictionaries with the same keys.

    Each has `step`, `scale` and `gradients`: `finite`, `max_abs` and, if wanted, `histogram`. Raises ValueError with
    the file and line, or the record's number, where one is not like that.
    """
    if isinstance(trace, dict):
        raise TypeError("replay: give a path, or a list of a dictionary per step, not one dictionary")
    records = _lines(Path(trace)) if isinstance(trace, (str, os.PathLike)) else _numbered(trace)
    for where, record in records:
        try:
            yield _step(record)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


def _lines(path: Path) -> Iterator[tuple[str, object]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            where = f"{path}: line {number}"
            try:
                yield where, json.loads(line)
            except ValueError as error:
                raise ValueError(f"{where}: not valid JSON ({error})") from None


def _numbered(records: Iterable[object]) -> Iterator[tuple[str, object]]:
    return ((f"record {number}", record) for number, record in enumerate(records, start=1))


def _step(record: object) -> TraceStep:
    gradients = _member(record, "gradients")
    finite = _member(gradients, "finite")
    if not isinstance(finite, bool):
        raise ValueError("finite: expected True or False")
    histogram = gradients.get("histogram")
    if histogram is not None and not isinstance(histogram, _core.Histogram):
        histogram = _core.Histogram.from_record(histogram)
    return TraceStep(
        step=int(_number(record, "step", 0)),
        scale=_number(record, "scale", SMALLEST_SCALE),
        finite=finite,
        max_abs=_number(gradients, "max_abs", 0) if finite else 0.0,
        histogram=histogram,
    )


def _member(record: object, key: str) -> Any:
    if not isinstance(record, dict) or key not in record:
        raise ValueError(f"it lacks '{key}'; {HOW_TO_RECORD}")
    return record[key]


def _number(record: object, key: str, low: float) -> float:
    value = _member(record, key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= low or math.isinf(value):
        raise ValueError(f"{key} = {value}: expected a number of {low:.4g} or more")
    return float(value)
