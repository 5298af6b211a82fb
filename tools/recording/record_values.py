"""Values within sentences that recorded runs give: cells of tables, and how arms end beside each other, seed by seed.

Each takes experiments/recorded first, then the experiment.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from pathlib import Path

from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU
from recording.differences import paired


def listed(words: Iterable[str]) -> str:
    """'1, 2 and 3'; equal ones once, where all are."""
    words = list(words)
    if len(set(words)) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def spread(values: Iterable[float], digits: int) -> str:
    """'5.9 to 8.8', the least and the most."""
    values = list(values)
    ends = dict.fromkeys(f"{value:.{digits}f}" for value in (min(values), max(values)))
    return " to ".join(ends)


def _summary(folder: Path, experiment: str) -> dict:
    return read_json(folder / CPU / experiment / "summary.json")


def _arm(folder: Path, experiment: str, arm: str) -> dict:
    arms = {line["arm"]: line for line in _summary(folder, experiment)["arms"]}
    if arm not in arms:
        raise ValueError(f"{experiment}: no arm '{arm}'; one of {', '.join(arms)}")
    return arms[arm]


def _pairs(folder: Path, experiment: str, *arms: str) -> list[tuple[float, ...]]:
    """Values of the arms, seed by seed, where each has one."""
    values = [dict(zip(line["seed_list"], line["values"])) for line in (_arm(folder, experiment, arm) for arm in arms)]
    seeds = [seed for seed in values[0] if all(own.get(seed) is not None for own in values)]
    return [tuple(own[seed] for own in values) for seed in seeds]


def cell(folder: Path, experiment: str, arm: str, column: str) -> str:
    """A cell of the report's table of arms."""
    lines = (folder / CPU / experiment / "report.txt").read_text(encoding="utf-8").splitlines()
    rows = [re.split(r" {2,}", line.strip()) for line in lines]
    head = next(row for row in rows if row[0] == "arm")
    row = next((row for row in rows if row[0] == arm), None)
    if row is None or column not in head:
        raise ValueError(f"{experiment}: no cell of '{arm}' and '{column}'")
    return row[head.index(column)]


def finding(folder: Path, experiment: str, opening: str, row: str, column: str) -> str:
    """A cell of a table of findings: by its first column's title, the first words of the row, the column's title."""
    sections = [section for entry in _summary(folder, experiment)["findings"] for section in entry["sections"]]
    for section in sections:
        if section["columns"][:1] == [opening] and column in section["columns"]:
            for cells in section["rows"]:
                if f"{' '.join(cells)} ".startswith(f"{row} "):
                    return cells[section["columns"].index(column)]
    raise ValueError(f"{experiment}: no finding by '{opening}' has '{row}' and '{column}'")


def ratios(folder: Path, experiment: str, arm: str, beside: str) -> str:
    """How many times another arm's metric one ends at, seed by seed."""
    return listed(f"{a / b:.2f}" for a, b in _pairs(folder, experiment, arm, beside))


def ratio(folder: Path, experiment: str, arm: str, beside: str) -> str:
    """How many times the mean of another arm the mean of one is."""
    own, other = (_arm(folder, experiment, name)["mean"] for name in (arm, beside))
    return f"{own / other:.1f}"


def changes(folder: Path, experiment: str, arm: str, beside: str) -> str:
    """Percent by which an arm's metric exceeds another's, seed by seed."""
    return listed(f"{100 * (a / b - 1):.0f}" for a, b in _pairs(folder, experiment, arm, beside))


def within(folder: Path, experiment: str, arm: str, beside: str) -> str:
    """Largest percent, above or below, by which an arm differs from another one, of all seeds."""
    return f"{max(abs(100 * (a / b - 1)) for a, b in _pairs(folder, experiment, arm, beside)):.2g} %"


def noted(folder: Path, experiment: str, arm: str, words: str) -> str:
    """The share behind `words` in the report's line about an arm: '3.4 %'."""
    text = (folder / CPU / experiment / "report.txt").read_text(encoding="utf-8")
    found = re.search(rf"^ *{re.escape(arm)}: .*?{re.escape(words)} (\S+ %)", text, re.MULTILINE)
    if not found:
        raise ValueError(f"{experiment}: no line of '{arm}' says '{words}'")
    return found[1]


def judged_of(folder: Path, experiment: str, words: str) -> str:
    """'247 of 280': the count that stands behind `words` in the verdict."""
    found = re.search(rf"{re.escape(words)} (\d+ of \d+)", _summary(folder, experiment)["verdict"])
    if not found:
        raise ValueError(f"{experiment}: no count behind '{words}' in its verdict")
    return found[1]


def error(folder: Path, experiment: str, opening: str, row: str, column: str) -> str:
    """The error that a cell of a table of findings begins with, in percent."""
    return f"{100 * float(finding(folder, experiment, opening, row, column).split()[0]):.0f} %"


def points_within(folder: Path, experiment: str, beside: str, arms: str) -> str:
    """The largest difference between the mean of an arm and the means of those that a pattern names."""
    other = _arm(folder, experiment, beside)["mean"]
    means = {line["arm"]: line["mean"] for line in _summary(folder, experiment)["arms"]}
    return f"{max(abs(own - other) for own in (means[name] for name in fnmatch.filter(means, arms))):.2f}"


def missed(folder: Path, experiment: str, arm: str, beside: str, start: str) -> str:
    """Percent of another arm's decrease from a third's metric that an arm misses, seed by seed."""
    return listed(f"{share:.0f}" for share in _missed(folder, experiment, arm, beside, start))


def missed_between(folder: Path, experiment: str, arm: str, beside: str, start: str) -> str:
    """Least and most of what an arm misses, as `missed` has it."""
    return spread(_missed(folder, experiment, arm, beside, start), 0)


def _missed(folder: Path, experiment: str, arm: str, beside: str, start: str) -> list[float]:
    found = _pairs(folder, experiment, arm, beside, start)
    return [100 * (own - other) / (first - other) for own, other, first in found]


def seeds_differ(folder: Path, experiment: str, arm: str) -> str:
    """Percent between the smallest and the largest metric of an arm's seeds."""
    values = [value for value in _arm(folder, experiment, arm)["values"] if value is not None]
    return f"{100 * (max(values) / min(values) - 1):.0f}"


def behind(folder: Path, experiment: str, arm: str, digits: str = "1") -> str:
    """How far an arm ends behind its baseline, paired over seeds: a share in percent, or in the metric's unit."""
    summary = _summary(folder, experiment)
    line = _arm(folder, experiment, arm)
    is_ratio = summary["comparison"] == "ratio"
    found = paired(line, _arm(folder, experiment, line["baseline"]), is_ratio, summary["lower_is_better"])
    if found is None:
        raise ValueError(f"{experiment}: fewer than two seeds of '{arm}' and of its baseline finished")
    return f"{100 * found.behind:.{digits}f} %" if is_ratio else f"{found.behind:.{digits}f}"
