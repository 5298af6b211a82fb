"""Arms of an experiment beside their baselines: paired difference, 95 % interval, smallest detectable difference."""

from __future__ import annotations

from math import expm1, log
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU
from halfscope.text_tables import aligned
from recording.student import half_interval

HEAD = ("arm", "beside", "behind by", "95 % interval", "detectable", "seeds")


class Paired(NamedTuple):
    """How far an arm ends behind its baseline, in the metric's unit or, of a ratio, as a share."""

    behind: float
    low: float
    high: float
    seeds: int

    @property
    def detectable(self) -> float:
        """Half the interval: the smallest difference that these seeds tell from none."""
        return (self.high - self.low) / 2


def paired(arm: dict, baseline: dict, ratio: bool, lower_is_better: bool) -> Paired | None:
    """arm, baseline: lines of a summary. None where fewer than two seeds finished in both."""
    theirs = dict(zip(baseline["seed_list"], baseline["values"]))
    pairs = [(a, theirs.get(seed)) for seed, a in zip(arm["seed_list"], arm["values"])]
    finished = [(a, b) for a, b in pairs if a is not None and b is not None]
    if len(finished) < 2:
        return None
    sign = 1 if lower_is_better else -1
    differences = [log(a / b) if ratio else a - b for a, b in finished]
    half, middle = half_interval(differences), mean(differences)
    ends = [sign * (expm1(x) if ratio else x) for x in (middle, middle - half, middle + half)]
    return Paired(ends[0], min(ends), max(ends), len(finished))


def differences_table(folder: Path, experiment: str) -> str:
    """The arms that have a baseline, in the record's order; "-" where the seeds give no interval.

    folder: experiments/recorded.
    """
    summary = read_json(folder / CPU / experiment / "summary.json")
    arms = {line["arm"]: line for line in summary["arms"]}
    ratio = summary["comparison"] == "ratio"
    rows = [HEAD]
    for name, arm in arms.items():
        baseline = arms.get(arm["baseline"])
        if baseline is None or baseline is arm:
            continue
        found = paired(arm, baseline, ratio, summary["lower_is_better"])
        if found is None:
            rows.append((name, arm["baseline"], "-", "-", "-", str(len(arm["values"]))))
            continue
        cells = [_cell(x, ratio) for x in (found.behind, found.low, found.high, found.detectable)]
        rows.append((name, arm["baseline"], cells[0], f"{cells[1]} .. {cells[2]}", cells[3], str(found.seeds)))
    return aligned(rows)


def _cell(value: float, ratio: bool) -> str:
    return f"{100 * value:.3f} %" if ratio else f"{value:.3f}"
