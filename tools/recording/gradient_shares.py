"""Shares of recorded gradients below a power of two, at the last step that has a histogram."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import mean

from halfscope.results.packed import HISTOGRAMS
from halfscope.results.recorded import CPU
from recording.record_values import listed, spread

ROLE = "weight_gradient"


def below(folder: Path, experiment: str, arm: str, exponent: str, form: str = "seeds") -> str:
    """Percent of the nonzero weight gradients that are smaller than 2^exponent.

    folder: experiments/recorded. form: `seeds` for each seed's, `mean`, or `between` for the least and the most.
    """
    shares = [100 * share for share in _shares(folder / CPU / experiment, arm, int(exponent))]
    if form == "seeds":
        return listed(f"{share:.1f}" for share in shares)
    return f"{mean(shares):.1f}" if form == "mean" else spread(shares, 0)


def _shares(record: Path, arm: str, exponent: int) -> list[float]:
    """A share for each seed."""
    counts: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for line in _histograms(record):
        if (line["arm"], line["role"]) == (arm, ROLE):
            smaller = max(0, exponent - line["first_exponent"])
            found = counts[line["seed"]][line["step"]]
            found[0] += sum(line["counts"][:smaller])
            found[1] += sum(line["counts"])
    if not counts:
        raise ValueError(f"{record}: no histograms of '{arm}'")
    last = (steps[max(steps)] for _, steps in sorted(counts.items()))
    return [smaller / every for smaller, every in last]


@cache
def _histograms(record: Path) -> list[dict]:
    with gzip.open(record / HISTOGRAMS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
