"""The README's table of results: each technique of the paper with and without, from the recorded summaries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfscope.results.json_files import read_json
from halfscope.results.packed import PackedRun, read_packed_runs
from halfscope.results.recorded import CPU, RecordedTable, read_table, read_tables

Setting = Callable[[Mapping[str, Any]], str]


def _learning_rate(config: Mapping[str, Any]) -> str:
    return f"learning rate {config['learning_rate']:g}"


def _loss_weight(config: Mapping[str, Any]) -> str:
    return f"loss times 1/{1 / config['loss_weight']:g}"


def _mean_over_words(config: Mapping[str, Any]) -> str:
    return f"mean over {config['batch'] * config['sequence_length']:,} words"


def _channel_sums(config: Mapping[str, Any]) -> str:
    return f"sums of {28 * 28 * config['batch']:,} terms"  # the first batch norm sees every pixel of Fashion-MNIST


BASELINE = "fp32"


@dataclass(frozen=True)
class Headline:
    """One technique, and the arms of an experiment that have it and lack it."""

    technique: str
    experiment: str
    network: str
    with_it: str
    without_it: str
    setting: Setting  # the one that makes the effect
    baseline: str = BASELINE


HEADLINES = (
    Headline("FP32 master copy (3.1)", "master-copy", "classifier", "fp16_mixed", "fp16_no_master", _learning_rate),
    Headline("loss scaling (3.2)", "detection-loss-scale", "detector", "fp16_s8", "fp16_s1", _loss_weight),
    Headline("FP32 sums (3.3)", "batchnorm-reduction", "batch norm", "fp32_sums", "fp16_sequential", _channel_sums),
)
# Settings that people use: nothing in them was chosen to make the effect. The sums above are such ones already.
EVERYDAY = (
    Headline("3.1, everyday", "bert-finetuning", "BERT, fine-tuned", "fp16_mixed", "fp16_no_master", _learning_rate),
    Headline(
        technique="3.2, everyday",
        experiment="where-loss-scaling",
        network="language model",
        with_it="gru_scaled_16384",
        without_it="gru_fp16_16384",
        setting=_mean_over_words,
        baseline="gru_fp32_16384",
    ),
)
HEAD = ("technique (section)", "network", "setting", "metric", "FP32", "FP16 with it", "FP16 without it", "seeds")


def headline_table(folder: Path) -> str:
    """A row per technique and device: means, with their 95 % intervals where there are several seeds.

    folder: experiments/recorded.
    """
    rows = [HEAD, ("---",) * len(HEAD)]
    for line in (*HEADLINES, *EVERYDAY):
        record = folder / CPU / line.experiment
        rows.append((line.technique, line.network, *_outcomes(read_table(record), line, read_packed_runs(record))))
        rows.extend(_device_rows(folder, line))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _device_rows(folder: Path, line: Headline) -> Iterator[tuple[str, ...]]:
    """The technique on every other device that has recorded FP32 and both arms."""
    for table in read_tables(folder, line.experiment):
        if table.device != CPU and {line.baseline, line.with_it, line.without_it} <= table.arms.keys():
            record = folder / table.device / line.experiment
            device = read_json(record / "environment.json")["gpu"]
            runs = read_packed_runs(record)
            models = sorted({str(run.config["model"]) for run in runs})
            yield (f"on an {device}", " or ".join(models), *_outcomes(table, line, runs))


def _outcomes(table: RecordedTable, line: Headline, runs: list[PackedRun]) -> tuple[str, ...]:
    """Cells from the setting to the seeds."""
    arms = (line.baseline, line.with_it, line.without_it)
    seeds = sorted({table.arms[arm].seeds for arm in arms})
    setting = line.setting(next(run.config for run in runs if run.arm == line.without_it))
    return (setting, table.metric, *map(table.outcome, arms), " or ".join(map(str, seeds)))


def everyday_line(folder: Path) -> str:
    """The classifier at another learning rate, and the detector with its loss as it is: without the chosen settings."""
    rates, losses = (read_table(folder / CPU / name) for name in ("where-master-copy", "negative-controls"))
    runs = read_packed_runs(folder / CPU / rates.experiment)
    rate = next(run.config["learning_rate"] for run in runs if run.arm == "cnn_adam_fp16_0.001")
    weights = (rates.outcome("cnn_adam_fp16_0.001"), rates.outcome("cnn_adam_fp32_0.001"))
    detector = (losses.outcome("detector_fp16_s1"), losses.outcome("detector_fp32"))
    return (
        "The settings of the first two rows were chosen for their effect, that of the third was not; "
        "the factor of the loss\n"
        "[stands for](docs/experiments/loss-scaling.md) a mean over more anchors. "
        f"Without them these networks show none. At a learning rate of "
        f"{rate:g}\nthe classifier's FP16 weights end at a {rates.metric} of {weights[0]} "
        f"beside FP32's {weights[1]} (`{rates.experiment}`);\nwith its loss as it is the detector ends at a "
        f"{losses.metric} of {detector[0]} without a scale, beside FP32's {detector[1]} (`{losses.experiment}`)."
    )
