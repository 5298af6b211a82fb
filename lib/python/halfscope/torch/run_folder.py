"""Writes what was watched as the records of a run: an experiment of one arm and one seed, whole or not at all."""

from __future__ import annotations

import json
import math
import platform
from pathlib import Path

import torch

from halfscope.results.json_files import FORMAT_VERSION
from halfscope.torch.observations import Observations

ARM = "watched"


class RunFolder:
    """`experiment`/watched/seed0, with the experiment's own summary above it."""

    def __init__(self, experiment: Path) -> None:
        self._experiment = experiment
        self._run = experiment / ARM / "seed0"
        self._identity = {
            "format_version": FORMAT_VERSION,
            "experiment": experiment.resolve().name,
            "arm": ARM,
            "seed": 0,
        }
        self._metrics: list[str] = []
        self._histograms: list[str] = []
        self._last_loss: float | None = None

    def begin(self, settings: dict) -> None:
        self._run.mkdir(parents=True, exist_ok=True)
        _write(self._run / "status", "RUNNING\n")
        # As recorded, the gradients are the model's own: what FP16 would make of them is a prediction, as of FP32's.
        _write_json(self._run / "config.json", {**self._identity, **settings, "activation_gradient": "fp32"})
        environment = {
            "pytorch": torch.__version__, "python": platform.python_version(), "cpu": platform.processor(),
            "threads": torch.get_num_threads(),
        }  # fmt: skip
        _write_json(self._run / "environment.json", environment)

    def add(self, record: dict, seen: Observations | None) -> None:
        """A step's line, with its counters where it was watched."""
        self._last_loss = record["loss"]
        if seen is not None:
            record |= {"tensors": seen.tensor_records(), "updates": seen.update_records(), "reductions": []}
            self._histograms += map(_line, seen.histogram_records(record["step"]))
        self._metrics.append(_line(record))

    def finish(self, steps: int, verdict: str) -> None:
        _write(self._run / "metrics.jsonl", "".join(self._metrics))
        _write(self._run / "histograms.jsonl", "".join(self._histograms))
        outcome = {"diverged": False, "diverged_step": None, "metric": self._last_loss}
        _write_json(self._run / "summary.json", {**self._identity, "steps": steps, **outcome})
        _write(self._run / "status", "DONE\n")
        line = {
            "arm": ARM, "seeds": 1, "mean": _finite(self._last_loss), "low": None, "high": None, "diverged": 0,
            "values": [_finite(self._last_loss)], "lost_updates": None,
        }  # fmt: skip
        words = {
            "title": "A PyTorch model, watched",
            "paper": "",
            "metric": "training loss",
            "unit": "",
            "lower_is_better": True,
        }
        summary = {"format_version": FORMAT_VERSION, "experiment": self._identity["experiment"], **words}
        _write_json(self._experiment / "summary.json", {**summary, "arms": [line], "verdict": verdict})


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _clean(value: object) -> object:
    """JSON has no infinity and no NaN: null stands for them."""
    return _finite(value) if isinstance(value, float) else value


def _line(record: dict) -> str:
    return json.dumps({key: _clean(value) for key, value in record.items()}) + "\n"


def _write_json(path: Path, value: dict) -> None:
    _write(path, json.dumps({key: _clean(entry) for key, entry in value.items()}, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
