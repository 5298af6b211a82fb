"""Index of the recorded experiments: place in the paper, claim, whether it holds, seeds, minutes."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from statistics import mean

from halfscope.results.claims import judgement
from halfscope.results.json_files import read_json
from halfscope.results.packed import is_packed, read_packed_runs
from halfscope.results.recorded import CPU, recorded_experiments

HEAD = ("in the paper", "experiment", "claim", "here", "seeds", "minutes a seed")
NOT_IN_THE_PAPER = "not in it"
PLACE = re.compile(r"(Section|Table|Figure|Fig\.) [\d.]*\d[a-z]?|Fig\. \d[a-z]? and \d[a-z]?")


def experiment_index(folder: Path) -> str:
    """A row per recorded experiment, in the order of `halfscope list experiments`.

    folder: experiments/recorded. Minutes are those of one seed of all arms, one core.
    """
    rows = [HEAD, ("---",) * len(HEAD)]
    rows += [_row(folder / CPU / name, summary) for name, summary in summaries_in_order(folder).items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def summaries_in_order(folder: Path) -> dict[str, dict]:
    """Summaries of the CPU's experiments by name, in the order of `halfscope list experiments`.

    folder: experiments/recorded.
    """
    names = recorded_experiments(folder, CPU)
    summaries = {name: read_json(folder / CPU / name / "summary.json") for name in names}
    return dict(sorted(summaries.items(), key=lambda item: (item[1].get("place", len(names) + 1), item[0])))


def place_in_paper(paper: str) -> str:
    """Sections, tables and figures that the first sentence names: "Section 3.1, Fig. 2a"."""
    if paper.startswith("No such experiment"):
        return NOT_IN_THE_PAPER
    found = dict.fromkeys(match[0].replace("Figure", "Fig.") for match in PLACE.finditer(paper))
    return ", ".join(found) or NOT_IN_THE_PAPER


def _row(folder: Path, summary: dict) -> tuple[str, ...]:
    claim = summary.get("claim") or {}
    seeds = sorted({arm["seeds"] for arm in summary["arms"]})
    return (
        place_in_paper(summary["paper"]),
        f"`{folder.name}`",
        claim.get("text", summary["title"]),
        judgement(claim),
        " to ".join(map(str, dict.fromkeys((seeds[0], seeds[-1])))),
        seed_minutes(folder),
    )


def seed_minutes(folder: Path) -> str:
    """The mean time of an arm's runs, summed over the arms; "-" where the runs are not recorded."""
    if not is_packed(folder):
        return "-"
    seconds = defaultdict(list)
    for run in read_packed_runs(folder):
        seconds[run.arm].append(run.summary.get("seconds", 0.0))
    total = sum(map(mean, seconds.values()))
    return f"{total / 60:.1f}" if total > 0 else "-"
