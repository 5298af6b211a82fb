"""Judgements of claims, as a summary has them. Needs the standard library only."""

from __future__ import annotations

from typing import Any

HOLDS, DOES_NOT_HOLD, UNDECIDED, NOT_JUDGED = "holds", "does not hold", "undecided", "not judged"
_BEFORE_INTERVALS = {True: HOLDS, False: DOES_NOT_HOLD, None: NOT_JUDGED}


def judgement(entry: dict[str, Any]) -> str:
    """Judgement of a claim, or of one of its expectations, in words.

    Summaries of earlier versions compared means, and say no more than whether an entry holds.
    """
    if "judgement" in entry:
        return entry["judgement"].replace("_", " ")
    return _BEFORE_INTERVALS[entry.get("holds")]
