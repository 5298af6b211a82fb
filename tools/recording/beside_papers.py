"""Ours beside theirs: the command of each recorded experiment, its arms' results, and the paper's."""

from __future__ import annotations

from pathlib import Path

from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU, RecordedTable, read_table, recorded_experiments
from recording.experiment_index import seed_minutes

MOST_ARMS = 4  # shown of a claim, beside their baseline
NO_EXPERIMENT = "No such experiment"


def beside_papers(folder: Path) -> str:
    """An entry per recorded experiment, in the order of `halfscope list experiments`: command, ours, theirs.

    folder: experiments/recorded. Ours are the arms of the claim and their baseline, means and 95 % intervals.
    """
    names = recorded_experiments(folder, CPU)
    summaries = {name: read_json(folder / CPU / name / "summary.json") for name in names}
    names.sort(key=lambda name: (summaries[name].get("place", len(names) + 1), name))
    return "\n".join(_entry(folder / CPU / name, summaries[name]) for name in names)


def _entry(folder: Path, summary: dict) -> str:
    minutes = seed_minutes(folder)
    time = "" if minutes == "-" else f", {minutes} min a seed"
    lines = (
        f"- `halfscope run {folder.name} --seeds 3`{time}: {summary['title']}",
        f"    - ours, {_ours(read_table(folder), summary)}",
        f"    - theirs: {_theirs(summary['paper'])}",
    )
    return "\n".join(lines)


def _ours(table: RecordedTable, summary: dict) -> str:
    """'test accuracy %: fp32 64.08 (62.20 .. 65.96); ...'."""
    expectations = (summary.get("claim") or {}).get("expectations", ())
    shown = list(dict.fromkeys(name for line in expectations for name in (line["baseline"], line["arm"])))
    if not shown:
        return f"{table.metric}: {len(table.arms)} arms, with no claim about one"
    rest = len(shown) - MOST_ARMS - 1
    outcomes = "; ".join(f"`{name}` {table.outcome(name)}" for name in shown[: MOST_ARMS + 1])
    return f"{table.metric}: {outcomes}{f'; and {rest} more' if rest > 0 else ''}"


def _theirs(paper: str) -> str:
    """The paper's result; a text that begins with "No such experiment" goes on with the nearest that there is."""
    if not paper.startswith(NO_EXPERIMENT):
        return paper
    rest = paper.removeprefix(NO_EXPERIMENT).lstrip(".: ")
    return f"no such experiment in it. {rest[:1].upper()}{rest[1:]}"
