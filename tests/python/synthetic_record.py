"""Writes folders as they are under experiments/recorded, of a CPU and of a GPU, and reads the tables of report.txt."""

from __future__ import annotations

import re
from pathlib import Path

from synthetic import write_json, write_json_lines


def arm(name: str, seeds: int, mean: float | None, milliseconds: float, **other: float | None) -> dict:
    """An arm of a summary; without an interval, divergence and memory unless `other` says so."""
    return {
        "arm": name, "seeds": seeds, "mean": mean, "low": None, "high": None, "diverged": 0, "values": [mean] * seeds,
        "lost_updates": 0.857, "seconds_per_step": milliseconds / 1000, "peak_device_bytes": None, **other,
    }  # fmt: skip


CPU_ARMS = [arm("fp32", 1, 59.72, 8.5), arm("fp16_pure", 1, None, 24.5, diverged=1)]
GPU_ARMS = [
    arm("fp32", 3, 70.12, 1.5, low=69.0, high=71.24, peak_device_bytes=2048 * 2**20),
    arm("fp16_mixed", 3, 70.02, 0.7, low=68.9, high=71.14, diverged=1, peak_device_bytes=1024 * 2**20),
]


def write_record(
    folder: Path, device: str, arms: list[dict], experiment: str = "one", settings: dict | None = None
) -> None:
    """The summary of an experiment and its packed runs; settings: further ones that all runs share."""
    record = folder / device / experiment
    write_json(
        record / "summary.json",
        {"format_version": 1, "experiment": experiment, "title": "a title", "metric": "test accuracy", "unit": "%",
         "paper": "Section 3.1: FP32 is matched.", "arms": arms, "verdict": "none"},
    )  # fmt: skip
    write_json(record / "environment.json", {"version": "0.1.0", "gpu": None if device == "cpu" else device})
    named = {"format_version": 1, "experiment": experiment}
    lines = [{**named, "config": named | {"model": "cnn"} | (settings or {})}]
    for line in arms:
        for seed, metric in enumerate(line["values"]):
            own = {"arm": line["arm"], "seed": seed}
            config = own | {"policy": line["arm"], "loss_scale": "none"}
            lines.append({**own, "config": config, "summary": {**named, **own, "metric": metric}})
    write_json_lines(record / "runs.jsonl", lines)


def report_rows(report: Path) -> dict[str, dict[str, str]]:
    """The table of arms of a report.txt: by arm and column the text of the cell."""
    lines = [re.split(r" {2,}", line.strip()) for line in report.read_text(encoding="utf-8").splitlines()]
    start = next(place for place, cells in enumerate(lines) if cells[0] == "arm")
    head = lines[start]
    end = next(place for place, cells in enumerate(lines) if place > start and len(cells) != len(head))
    return {cells[0]: dict(zip(head[1:], cells[1:])) for cells in lines[start + 1 : end]}
