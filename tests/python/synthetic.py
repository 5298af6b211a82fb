"""Writes results folders as the program writes them, with numbers small enough to check by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from halfscope import Histogram
from halfscope.results.histogram import RecordedHistogram

FIRST_EXPONENT = -50


@dataclass(frozen=True)
class ArmPlan:
    """Outcome of an arm of the synthetic experiment: `final` is its metric in percent, None where it diverges."""

    name: str
    final: float | None = 70.0
    lost: int = 20  # lost ones of 100 non-zero updates
    scale: float = 1.0
    diverges_at: int | None = None


PLANS = (
    ArmPlan("fp32", final=71.0, lost=80),
    ArmPlan("fp16_mixed", final=70.8, lost=81, scale=1024.0),
    ArmPlan("fp16_no_master", final=63.0, lost=82, scale=1024.0),
    ArmPlan("fp16_unprotected", final=None, scale=1024.0, diverges_at=300),
)


def write_results(folder: Path, plans=PLANS, seeds: int = 3, steps: int = 600, name: str = "master-copy") -> Path:
    """A whole experiment under `folder`; returns the experiment's own folder."""
    experiment = folder / name
    for plan in plans:
        for seed in range(seeds):
            _write_run(experiment / plan.name / f"seed{seed}", plan, seed, steps, name)
    summary = {
        "format_version": 1,
        "experiment": name,
        "title": "FP32 master copy of the weights",
        "metric": "test accuracy",
        "unit": "%",
        "paper": "FP16 weights alone: 80 % relative loss of accuracy; with an FP32 master copy: as FP32",
        "arms": [_arm_line(plan, seeds) for plan in plans],
        "verdict": "Without the master copy 82 % of the updates are lost.",
    }
    write_json(experiment / "summary.json", summary)
    return experiment


def write_json(path: Path, value: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_json_lines(path: Path, records: list[dict]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def histogram_record(step: int, role: str, scale: float, counts: dict[int, int], **special: int) -> dict:
    """A line of histograms.jsonl from counts per true exponent: the record holds the values times `scale`."""
    shift = round(np.log2(scale))
    exponents = range(FIRST_EXPONENT, 20)
    return {
        "step": step,
        "tensor": "conv1.weight",
        "role": role,
        "scale": scale,
        "first_exponent": FIRST_EXPONENT + shift,
        "counts": [counts.get(exponent, 0) for exponent in exponents],
        "pow2": [0 for _ in exponents],
        "top": [0 for _ in exponents],
        "subnormal_carry": [0 for _ in exponents],
        "zeros": special.get("zeros", 0),
        "negative_zeros": special.get("negative_zeros", 0),
        "infinities": special.get("infinities", 0),
        "nans": special.get("nans", 0),
    }


def bell(centre: float, width: float, total: int = 100_000) -> dict[int, int]:
    """Counts per exponent, normally distributed."""
    exponents = np.arange(-50, 16)
    weights = np.exp(-0.5 * ((exponents - centre) / width) ** 2)
    return dict(zip(exponents.tolist(), np.round(total * weights / weights.sum()).astype(int).tolist()))


def _value(plan: ArmPlan, seed: int) -> float | None:
    return None if plan.final is None else round(plan.final + 0.3 * (seed - 1), 2)


def _arm_line(plan: ArmPlan, seeds: int) -> dict:
    values = [_value(plan, seed) for seed in range(seeds)]
    done = [value for value in values if value is not None]
    return {
        "arm": plan.name,
        "seeds": seeds,
        "mean": plan.final if done else None,
        "low": plan.final - 0.75 if done else None,
        "high": plan.final + 0.75 if done else None,
        "diverged": seeds - len(done),
        "values": values,
        "lost_updates": plan.lost / 100 if done else None,
    }


def _write_run(folder: Path, plan: ArmPlan, seed: int, steps: int, experiment: str) -> None:
    last = plan.diverges_at or steps
    loss = _losses(plan, seed, last)
    write_json(
        folder / "config.json",
        {"format_version": 1, "experiment": experiment, "arm": plan.name, "seed": seed, "steps": steps, "batch": 64,
         "learning_rate": 1e-5, "policy": plan.name, "loss_scale": f"{plan.scale:g}"},
    )  # fmt: skip
    write_json(folder / "environment.json", {"version": "0.1.0", "compiler": "g++ 12.2.0", "threads": 2})
    write_json(
        folder / "summary.json",
        {"format_version": 1, "experiment": experiment, "arm": plan.name, "seed": seed, "steps": last,
         "diverged": plan.diverges_at is not None, "diverged_step": plan.diverges_at,
         "metric": _value(plan, seed), "test_loss": None if plan.final is None else 0.8,
         "train_loss": None if plan.final is None else loss[-1],
         "lost_updates": plan.lost / 100, "seconds": 4.0},
    )  # fmt: skip
    write_json_lines(folder / "metrics.jsonl", [_step(plan, step, loss[step - 1]) for step in range(1, last + 1)])
    write_json_lines(folder / "histograms.jsonl", [line for step in (10, 20) for line in _histograms(plan, step)])
    (folder / "status").write_text("DONE\n")


def _losses(plan: ArmPlan, seed: int, last: int) -> list[float | None]:
    random = np.random.default_rng(seed)
    steps = np.arange(1, last + 1)
    floor = 1.3 if plan.name == "fp16_no_master" else 0.8
    loss = (floor + (2.3 - floor) * np.exp(-steps / 150) + 0.08 * random.standard_normal(last)).tolist()
    return [*loss[:-1], None] if plan.diverges_at else loss


def _step(plan: ArmPlan, step: int, loss: float | None) -> dict:
    record = {"step": step, "loss": loss, "metric": None, "scale": plan.scale, "skipped": False}
    if step == plan.diverges_at:
        record["first_overflow"] = {
            "pass": "forward", "cause": "reduction", "tensor": "bn1.mean", "role": "reduction", "elements": 16,
            "nonfinite": 2, "max_abs": 65000.0,
            "before": [{"tensor": "conv1", "role": "activation", "elements": 9, "nonfinite": 0, "max_abs": 812.5}],
        }  # fmt: skip
    if step % 20 == 0:
        record["fp32_reference"] = [
            {"tensor": "conv1", "role": "activation", "relative_error": 2e-4, "cosine": 0.9999},
            {"tensor": "conv1.weight", "role": "weight_gradient", "relative_error": None, "cosine": None},
        ]
    if step % 10 == 0:
        record["tensors"] = [
            {"tensor": "conv1.weight", "role": "weight_gradient", "scale": plan.scale, "elements": 1000, "zeros": 50,
             "flushed": 7, "subnormal": 90, "overflow": 0, "nonfinite": 0, "max_abs": 0.25},
        ]  # fmt: skip
        record["updates"] = [
            {"tensor": "conv1.weight", "elements": 60, "nonzero": 40, "lost": plan.lost - 50,
             "applied_over_intended": 0.4},
            {"tensor": "fc1.weight", "elements": 60, "nonzero": 60, "lost": 50, "applied_over_intended": None},
        ]  # fmt: skip
        record["reductions"] = [
            {"tensor": "bn1.mean", "reductions": 16, "terms": 50176, "overflowed": 2 if plan.diverges_at else 0,
             "first_overflow": 4100 if plan.diverges_at else -1, "stagnated": 9, "largest_partial_sum": 812.5},
        ]  # fmt: skip
    return record


def _histograms(plan: ArmPlan, step: int) -> list[dict]:
    nans = 30 if plan.diverges_at and step == 20 else 0
    return [
        histogram_record(step, "weight_gradient", plan.scale, bell(-18, 4), zeros=4900, negative_zeros=900, nans=nans),
        histogram_record(step, "activation_gradient", plan.scale, bell(-22, 4), zeros=150_000, nans=nans),
        histogram_record(step, "update_ratio", 1.0, bell(-13 if plan.lost > 81 else -14, 3), zeros=10, infinities=3),
    ]


def unscaled(record: dict) -> RecordedHistogram:
    """The histogram of a line of histograms.jsonl without the loss scale."""
    return RecordedHistogram.of(Histogram.from_record(record)).shifted(-round(np.log2(record["scale"])))
