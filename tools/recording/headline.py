"""The README's table of results: each technique of the paper with and without, from the recorded summaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from halfscope.results.json_files import read_json
from halfscope.results.packed import read_packed_runs
from halfscope.results.recorded import CPU, RecordedTable, read_table, read_tables


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
    """A row per technique and device: means, with their 95 % intervals where there are several seeds.

    folder: experiments/recorded.
    """
    rows = [HEAD, ("---",) * len(HEAD)]
    for line in HEADLINES:
        rows.append((line.technique, line.network, *_outcomes(read_table(folder / CPU / line.experiment), line)))
        rows.extend(_device_rows(folder, line))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _device_rows(folder: Path, line: Headline) -> Iterator[tuple[str, ...]]:
    """The technique on every other device that has recorded FP32 and both arms."""
    for table in read_tables(folder, line.experiment):
        if table.device != CPU and {BASELINE, line.with_it, line.without_it} <= table.arms.keys():
            record = folder / table.device / line.experiment
            device = read_json(record / "environment.json")["gpu"]
            models = sorted({str(run.config["model"]) for run in read_packed_runs(record)})
            yield (f"on an {device}", " or ".join(models), *_outcomes(table, line))


def _outcomes(table: RecordedTable, line: Headline) -> tuple[str, ...]:
    """From the metric to the seeds."""
    arms = (BASELINE, line.with_it, line.without_it)
    seeds = sorted({table.arms[arm].seeds for arm in arms})
    return (table.metric, *map(table.outcome, arms), " or ".join(map(str, seeds)))
