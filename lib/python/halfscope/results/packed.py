"""Packed records of an experiment: runs.jsonl, environment.json and histograms.jsonl.gz.

Needs the standard library only.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from halfscope.results.json_files import read_json_lines, require_version

ENVIRONMENT, RUNS, HISTOGRAMS = "environment.json", "runs.jsonl", "histograms.jsonl.gz"
HEAD_KEYS = {"format_version": int, "experiment": str, "config": dict}
RUN_KEYS = {"arm": str, "seed": int, "config": dict, "summary": dict}
STEP_KEYS = {"step": int, "tensors": list}
CURVE_KEYS = {"steps": list, "loss": list}
IN_WORDS = {str: "a text", int: "a whole number", dict: "an object", list: "a list"}


@dataclass(frozen=True)
class PackedRun:
    """A line of runs.jsonl, with the settings that all runs share."""

    arm: str
    seed: int
    config: dict
    summary: dict
    first_step: dict | None  # step, and the counters of its tensors; None where the record does not keep them
    loss_curve: dict | None = None  # as curves.loss_curve; None in records of earlier versions
    zero_causes: tuple[dict, ...] = ()  # as curves.zero_causes


def is_packed(folder: Path) -> bool:
    """Whether the experiment in `folder` is one file of runs, not a folder for each."""
    return (folder / RUNS).exists()


def read_packed_runs(folder: Path) -> list[PackedRun]:
    """The runs in `folder`, in the order of their lines. Raises ValueError, with file and line, for a damaged one."""
    path = folder / RUNS
    lines = enumerate(read_json_lines(path), start=1)
    _, head = next(lines, (1, None))
    if head is None:
        raise ValueError(f"{path}: it is empty; its first line has {', '.join(HEAD_KEYS)}")
    _require(head, HEAD_KEYS, f"{path}:1")
    require_version(head, f"{path}:1")
    runs: dict[tuple[str, int], PackedRun] = {}
    for number, line in lines:
        run = _read_run(line, head["config"], f"{path}:{number}")
        if (run.arm, run.seed) in runs:
            raise ValueError(f"{path}:{number}: an earlier line has arm {run.arm}, seed {run.seed} too; delete one")
        runs[run.arm, run.seed] = run
    return list(runs.values())


def _read_run(line: object, shared: dict, where: str) -> PackedRun:
    fields = _require(line, RUN_KEYS, where)
    config = shared | fields["config"]
    for value in (config, fields["summary"]):
        require_version(value, where)
    first_step = fields.get("first_step")
    if first_step is not None:
        _require(first_step, STEP_KEYS, f"{where}: first_step")
    curve = fields.get("loss_curve")
    if curve is not None:
        _require(curve, CURVE_KEYS, f"{where}: loss_curve")
    causes = tuple(_require(step, {"step": int}, f"{where}: zero_causes") for step in fields.get("zero_causes", ()))
    return PackedRun(fields["arm"], fields["seed"], config, fields["summary"], first_step, curve, causes)


def _require(value: object, keys: Mapping[str, type], where: str) -> dict:
    """`value`, an object that has `keys` of these types."""
    if not isinstance(value, dict):
        raise ValueError(f"{where}: expected an object with {', '.join(keys)}; found {_quoted(value)}")
    for key, kind in keys.items():
        if key not in value:
            raise ValueError(f"{where}: it lacks '{key}'; a line has {', '.join(keys)}")
        if type(value[key]) is not kind:
            raise ValueError(f"{where}: {key} is {_quoted(value[key])}; expected {IN_WORDS[kind]}")
    return value


def _quoted(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


class PackedHistograms:
    """The lines of histograms.jsonl.gz by run, read where one is first asked for."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / HISTOGRAMS

    def of_run(self, arm: str, seed: int) -> Iterator[tuple[str, str]]:
        """Each line of the run with its place, "FILE:LINE"; none where the record keeps no histograms."""
        for number, text in self._lines.get((arm, seed), ()):
            yield f"{self._path}:{number}", text

    @cached_property
    def _lines(self) -> dict[tuple[str, int], list[tuple[int, str]]]:
        found: dict[tuple[str, int], list[tuple[int, str]]] = {}
        for number, text in enumerate(self._text().splitlines(), start=1):
            where = f"{self._path}:{number}"
            try:
                record = json.loads(text)
            except ValueError as error:
                raise ValueError(f"{where}: not valid JSON ({error})") from None
            run = _require(record, {"arm": str, "seed": int}, where)
            found.setdefault((run["arm"], run["seed"]), []).append((number, text))
        return found

    def _text(self) -> str:
        if not self._path.exists():
            return ""
        try:
            return gzip.decompress(self._path.read_bytes()).decode("utf-8")
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
            raise ValueError(f"{self._path}: no whole gzip file ({error}); record the results again") from None
