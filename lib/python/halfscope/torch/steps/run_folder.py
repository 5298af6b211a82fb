"""Records of a PyTorch training as the folder of a run, line by line as it goes, and of the experiment around it."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from halfscope._core import confidence_95
from halfscope.formats import label
from halfscope.results.arms import WATCHED as ARM
from halfscope.results.json_files import FORMAT_VERSION, finite_or_none
from halfscope.torch.counts.counter import StepCounts
from halfscope.whole_files import write_whole


class RunFolder:
    """The run `experiment`/ARM/seedK.

    Raises ValueError where `experiment` holds it already.
    """

    def __init__(self, experiment: Path, arm: str = ARM, seed: int = 0) -> None:
        self._experiment = experiment
        self._run = experiment / arm / f"seed{seed}"
        self._identity: dict[str, Any] = {
            "format_version": FORMAT_VERSION,
            "experiment": experiment.resolve().name,
            "arm": arm,
            "seed": seed,
        }
        self._settings: dict = {}
        self._last_loss: float | None = None
        self._formats: set[str] = set()  # that the activation gradients came in
        try:
            self._run.mkdir(parents=True)
        except FileExistsError:
            raise ValueError(f"watch: out={str(experiment)!r} holds a run already; give a new folder") from None

    def begin(self, settings: dict) -> None:
        write_whole(self._run / "status", "RUNNING\n")
        self._settings = settings
        self._write_config()
        environment = {
            "pytorch": torch.__version__, "python": platform.python_version(), "cpu": processor(),
            "threads": torch.get_num_threads(),
        }  # fmt: skip
        _write_json(self._run / "environment.json", environment)
        for name in ("metrics.jsonl", "histograms.jsonl"):
            (self._run / name).touch()

    def _write_config(self) -> None:
        # FP32 gradients are the model's own: what another format would make of them is a prediction.
        narrow = sorted(self._formats - {"fp32", "fp64"})
        written = {"activation_gradient": narrow[0] if narrow else "fp32"}
        _write_json(self._run / "config.json", {**self._identity, **written, **self._settings})

    def _for_format(self) -> str:
        format = self._settings.get("format")
        return f" for {label(format)}" if format else ""

    def add(self, record: dict, seen: StepCounts | None) -> None:
        """A step's line, with its counters where it was watched; on the disk when it returns."""
        if record["loss"] is not None:
            self._last_loss = record["loss"]
        if seen is not None:
            record |= seen.line()
            self._append("histograms.jsonl", seen.histogram_lines(record["step"]))
            self._note_formats(seen)
            if seen.format != "fp16":  # as records without a format are
                record["format"] = seen.format
        self._append("metrics.jsonl", [record])

    def _note_formats(self, seen: StepCounts) -> None:
        formats = {found for (role, _), found in seen.formats.items() if role == "activation_gradient"}
        if not formats <= self._formats:
            self._formats |= formats
            self._write_config()

    def _append(self, name: str, records: Iterable[dict]) -> None:
        with open(self._run / name, "a", encoding="utf-8") as file:
            file.write("".join(map(_line, records)))

    def fail(self, reason: BaseException) -> None:
        """The training ended with an exception: no summary, and the status says why."""
        text = " ".join(str(reason).split())
        write_whole(self._run / "status", f"FAILED: {type(reason).__name__}: {text}\n")

    def finish(self, steps: int, metric: float | None, counts: dict | None = None) -> None:
        """metric: of the finished training; the last loss where it has none. counts: further keys of the summary."""
        metric = self._last_loss if metric is None else metric
        diverged = metric is not None and not math.isfinite(metric)
        outcome = {
            "diverged": diverged, "diverged_step": steps if diverged else None, "metric": metric,
            "train_loss": self._last_loss,
        }  # fmt: skip
        _write_json(self._run / "summary.json", {**self._identity, "steps": steps, **outcome, **(counts or {})})
        write_whole(self._run / "status", "DONE\n")

    def finish_alone(self, steps: int, verdict: str) -> None:
        """The same, and the summary of an experiment that has no other run."""
        self.finish(steps, None)
        words = ExperimentWords(f"A PyTorch model, watched{self._for_format()}", "training loss", verdict)
        write_experiment(self._experiment, words, [arm_line(self._identity["arm"], [self._last_loss])])


class ExperimentWords(NamedTuple):
    """Words of an experiment's summary."""

    title: str
    metric: str
    verdict: str
    lower_is_better: bool = True


def arm_line(arm: str, metrics: list[float | None], lost_updates: float | None = None) -> dict:
    """An arm's line of the experiment's summary, from the metric of each seed."""
    values = [finite_or_none(metric) for metric in metrics]
    finite = [value for value in values if value is not None]
    mean = sum(finite) / len(finite) if len(finite) == len(values) and finite else None
    low, high = _interval(mean, finite)
    diverged = sum(metric is not None and not math.isfinite(metric) for metric in metrics)
    return {
        "arm": arm, "seeds": len(metrics), "mean": mean, "low": low, "high": high, "diverged": diverged,
        "values": values, "lost_updates": lost_updates,
    }  # fmt: skip


def _interval(mean: float | None, values: list[float]) -> tuple[float | None, float | None]:
    """The 95 % interval of a mean over several values."""
    if mean is None or len(values) < 2:
        return None, None
    half = confidence_95(values)
    return mean - half, mean + half


def write_definition(folder: Path, words: ExperimentWords, arms: dict[str, dict[str, str]]) -> None:
    """experiment.toml, by which `halfscope report` knows the experiment; arms: summary and settings by name."""
    quoted = json.dumps  # TOML's basic strings have JSON's escapes
    lines = [
        f"name = {quoted(folder.resolve().name)}", f"summary = {quoted(words.title)}", "", "[metric]", 'key = "metric"',
        f"name = {quoted(words.metric)}", 'unit = ""', 'comparison = "difference"',
        f"lower_is_better = {quoted(words.lower_is_better)}", "digits = 4",
    ]  # fmt: skip
    for arm, settings in arms.items():
        lines += ["", f"[arm.{quoted(arm)}]", *(f"{key} = {quoted(value)}" for key, value in settings.items())]
    write_whole(folder / "experiment.toml", "\n".join(lines) + "\n")


def write_experiment(folder: Path, words: ExperimentWords, arms: list[dict]) -> None:
    """summary.json of an experiment."""
    own = words._asdict()
    verdict = own.pop("verdict")
    summary = {
        "format_version": FORMAT_VERSION, "experiment": folder.resolve().name, "title": own["title"], "paper": "",
        "metric": own["metric"], "unit": "", "lower_is_better": own["lower_is_better"],
    }  # fmt: skip
    _write_json(folder / "summary.json", {**summary, "arms": arms, "verdict": verdict})


def processor() -> str:
    """The CPU's name; Python leaves it empty on many systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _clean(value: object) -> object:
    """JSON has no infinity and no NaN: null stands for them."""
    return finite_or_none(value) if isinstance(value, float) else value


def _line(record: dict) -> str:
    return json.dumps({key: _clean(value) for key, value in record.items()}) + "\n"


def _write_json(path: Path, value: dict) -> None:
    write_whole(path, json.dumps({key: _clean(entry) for key, entry in value.items()}, indent=2) + "\n")
