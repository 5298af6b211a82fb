"""Ours beside theirs: the command of each recorded experiment, its arms' results, and the paper's."""

from __future__ import annotations

from pathlib import Path

from halfscope.results.recorded import CPU, RecordedTable, read_table
from recording.claims import claimed_arms
from recording.experiment_index import seed_minutes, summaries_in_order

NO_EXPERIMENT = "No such experiment"


def beside_papers(folder: Path) -> str:
    """An entry per recorded experiment, in the order of `halfscope list experiments`: command, ours, theirs.

    folder: experiments/recorded. Ours are the arms of the claim and their baseline, means and 95 % intervals.
    """
    summaries = summaries_in_order(folder)
    return "\n".join(_entry(folder / CPU / name, summary) for name, summary in summaries.items())


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
    claim = summary.get("claim")
    if not claim:
        return f"{table.metric}: {len(table.arms)} arms, with no claim about one"
    shown, rest = claimed_arms(claim)
    return f"{table.metric}: {'; '.join([*(f'`{name}` {table.outcome(name)}' for name in shown), *rest])}"


def _theirs(paper: str) -> str:
    """The paper's result; a text that begins with "No such experiment" goes on with the nearest that there is."""
    if not paper.startswith(NO_EXPERIMENT):
        return paper
    rest = paper.removeprefix(NO_EXPERIMENT).lstrip(".: ")
    return f"no such experiment in it. {rest[:1].upper()}{rest[1:]}"
