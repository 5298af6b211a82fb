"""Writes what was watched as the records of a run: an experiment of one arm and one seed, line by line as it goes."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Iterable
from pathlib import Path

import torch

from halfscope.results.arms import WATCHED as ARM
from halfscope.results.formats import label
from halfscope.results.json_files import FORMAT_VERSION
from halfscope.torch.observations import Observations
from halfscope.torch.step_records import histogram_records, tensor_records, update_records
from halfscope.whole_files import write_whole


class RunFolder:
    """`experiment`/watched/seed0, with the experiment's own summary above it.

    Raises ValueError where `experiment` holds a run already.
    """

    def __init__(self, experiment: Path) -> None:
        self._experiment = experiment
        self._run = experiment / ARM / "seed0"
        self._identity = {
            "format_version": FORMAT_VERSION,
            "experiment": experiment.resolve().name,
            "arm": ARM,
            "seed": 0,
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
        _write_json(self._run / "config.json", {**self._identity, **self._settings, **written})

    def _for_format(self) -> str:
        format = self._settings.get("format")
        return f" for {label(format)}" if format else ""

    def add(self, record: dict, seen: Observations | None) -> None:
        """A step's line, with its counters where it was watched; on the disk when it returns."""
        if record["loss"] is not None:
            self._last_loss = record["loss"]
        if seen is not None:
            record |= {"tensors": tensor_records(seen), "updates": update_records(seen), "reductions": []}
            self._append("histograms.jsonl", histogram_records(seen, record["step"]))
            self._note_formats(seen)
            if seen.format != "fp16":  # as records without a format are
                record["format"] = seen.format
        self._append("metrics.jsonl", [record])

    def _note_formats(self, seen: Observations) -> None:
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

    def finish(self, steps: int, verdict: str) -> None:
        diverged = self._last_loss is not None and not math.isfinite(self._last_loss)
        outcome = {"diverged": diverged, "diverged_step": steps if diverged else None, "metric": self._last_loss}
        _write_json(self._run / "summary.json", {**self._identity, "steps": steps, **outcome})
        write_whole(self._run / "status", "DONE\n")
        line = {
            "arm": ARM, "seeds": 1, "mean": _finite(self._last_loss), "low": None, "high": None,
            "diverged": int(diverged), "values": [_finite(self._last_loss)], "lost_updates": None,
        }  # fmt: skip
        words = {
            "title": f"A PyTorch model, watched{self._for_format()}",
            "paper": "",
            "metric": "training loss",
            "unit": "",
            "lower_is_better": True,
        }
        summary = {"format_version": FORMAT_VERSION, "experiment": self._identity["experiment"], **words}
        _write_json(self._experiment / "summary.json", {**summary, "arms": [line], "verdict": verdict})


def processor() -> str:
    """The CPU's name; Python leaves it empty on many systems."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _clean(value: object) -> object:
    """JSON has no infinity and no NaN: null stands for them."""
    return _finite(value) if isinstance(value, float) else value


def _line(record: dict) -> str:
    return json.dumps({key: _clean(value) for key, value in record.items()}) + "\n"


def _write_json(path: Path, value: dict) -> None:
    write_whole(path, json.dumps({key: _clean(entry) for key, entry in value.items()}, indent=2) + "\n")
