"""Table of claims: whether each holds in the records, does not, or is undecided by their seeds, and by which arms."""

from __future__ import annotations

from pathlib import Path

from halfscope.results.claims import DOES_NOT_HOLD, UNDECIDED, judgement
from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU

MOST_ARMS = 5  # shown of a claim
HEAD = ("experiment", "claim", "here", "measured")


def claims_table(folder: Path, names: list[str]) -> str:
    """A row per experiment, in the order of `names`; one without a record says so.

    folder: experiments/recorded.
    """
    rows = [HEAD, ("---",) * len(HEAD), *(_row(folder / CPU / name) for name in names)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(folder: Path) -> tuple[str, ...]:
    if not (folder / "summary.json").exists():
        return f"`{folder.name}`", "", "not recorded", ""
    summary = read_json(folder / "summary.json")
    claim = summary["claim"]
    return f"`{folder.name}`", claim["text"], outcome(claim), measured(summary)


def outcome(claim: dict) -> str:
    """The judgement, with the arms that are not as expected or that the seeds leave open."""
    word = judgement(claim)
    against, open_arms = _arms(claim, DOES_NOT_HOLD), _arms(claim, UNDECIDED)
    if word == DOES_NOT_HOLD:
        return f"{word}: {_names(against)}" + (f"; {UNDECIDED}: {_names(open_arms)}" if open_arms else "")
    return f"{word}: {_names(open_arms)}" if word == UNDECIDED else word


def _arms(claim: dict, word: str) -> list[str]:
    return [line["arm"] for line in claim["expectations"] if judgement(line) == word]


def measured(summary: dict) -> str:
    """The metric of the arms that the claim is about, each after its baseline."""
    arms = {arm["arm"]: arm for arm in summary["arms"]}
    shown, rest = claimed_arms(summary["claim"])
    return f"{summary['metric']}: {', '.join([*(f'`{name}` {_value(arms.get(name))}' for name in shown), *rest])}"


def claimed_arms(claim: dict) -> tuple[list[str], list[str]]:
    """Arms that a claim is about, each after its baseline: the first ones, and "and 3 more" if there are."""
    names = list(dict.fromkeys(name for line in claim["expectations"] for name in (line["baseline"], line["arm"])))
    return names[:MOST_ARMS], [f"and {len(names) - MOST_ARMS} more"] * (len(names) > MOST_ARMS)


def _value(arm: dict | None) -> str:
    if arm is None:
        return "not run"
    return "diverged" if arm["mean"] is None else f"{arm['mean']:.4g}"


def _names(arms: list[str]) -> str:
    return ", ".join(f"`{arm}`" for arm in dict.fromkeys(arms))
