"""The README's table of results: each technique of the paper with and without, from the recorded summaries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from halfscope.results.recorded import CPU, read_table


@dataclass(frozen=True)
class Headline:
    """One technique, and the arms of an experiment that have it and lack it. The baseline is BASELINE."""

    technique: str
    experiment: str
    network: str
    with_it: str
    without_it: str


BASELINE = "fp32"
HEADLINES = (
    Headline("FP32 master copy (3.1)", "master-copy", "classifier", "fp16_mixed", "fp16_no_master"),
    Headline("loss scaling (3.2)", "detection-loss-scale", "detector", "fp16_s8", "fp16_s1"),
    Headline("FP32 sums (3.3)", "batchnorm-reduction", "classifier, batch norm", "fp32_sums", "fp16_sequential"),
)
HEAD = ("technique (section)", "network", "metric", "FP32", "FP16 with it", "FP16 without it", "seeds")


def headline_table(folder: Path) -> str:
    """A row per technique: means, with their 95 % intervals where there are several seeds.

    folder: experiments/recorded.
    """
    rows = [HEAD, ("---",) * len(HEAD)]
    for line in HEADLINES:
        table = read_table(folder / CPU / line.experiment)
        arms = (BASELINE, line.with_it, line.without_it)
        seeds = sorted({table.arms[arm].seeds for arm in arms})
        outcomes = map(table.outcome, arms)
        rows.append((line.technique, line.network, table.metric, *outcomes, " or ".join(map(str, seeds))))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
