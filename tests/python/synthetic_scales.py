"""Results of loss-scale experiments as the program writes them, with counts that can be computed in one's head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from synthetic import bell, histogram_record, write_json, write_json_lines

# In the order of the backward pass: the loss first.
TENSORS = (
    ("head", "activation_gradient"),
    ("head.weight", "weight_gradient"),
    ("conv1", "activation_gradient"),
    ("conv1.weight", "weight_gradient"),
)
ELEMENTS, ZEROS = 1000, 200  # in every tensor
CENTRES = {"activation_gradient": -26, "weight_gradient": -20}  # centres of the bells of FP32's exponents
STEPS, OBSERVED, EVALUATED = 20, (1, 5, 20), (10, 20)
OVERFLOWS_FROM = 2.0**15


@dataclass(frozen=True)
class ScaleArm:
    name: str
    mean: float | None
    scale: str = "1"  # as config.json has it
    ends_at: float | None = None  # the scale of the last step, where it is not the first one's


DETECTION = (
    ScaleArm("fp32", 0.530, "none"),
    ScaleArm("fp16_s1", 0.120),
    ScaleArm("fp16_s8", 0.525, "8"),
    ScaleArm("fp16_s64", 0.531, "64"),
    ScaleArm("fp16_s1024", 0.529, "1024"),
    ScaleArm("fp16_dynamic", 0.528, "dynamic", 2.0**20),
)
SWEEP = (
    ScaleArm("fp32", 80.0, "none"),
    *(ScaleArm(f"fp16_s{2.0**k:.10g}", 79.5 if k < 16 else None, f"{2.0**k:.10g}") for k in range(-4, 25)),
    ScaleArm("fp16_dynamic", 79.0, "dynamic", 2.0**15),
    ScaleArm("fp16_s262144_skip", 63.0, "262144"),
)


def flushed(scale: float, place: int, step: int) -> int:
    """How many of a tensor's 800 non-zero elements are flushed: fewer at large scales and further from the loss."""
    return max(int(400 / max(scale, 1)) - 50 * place, 0) + step


def write_scale_results(folder: Path, arms=DETECTION, seeds: int = 2, **summary: object) -> Path:
    """An experiment in `folder` whose summary is that of a detector, changed as `summary` says; its own folder."""
    name = str(summary.get("experiment", "detection-loss-scale"))
    for arm in arms:
        for seed in range(seeds):
            _write_run(folder / name / arm.name / f"seed{seed}", arm, seed, name)
    write_json(
        folder / name / "summary.json",
        {"format_version": 1, "experiment": name, "title": "Loss scales", "metric": "AP50", "unit": "",
         "lower_is_better": False, "paper": "A factor of 8 is enough (section 3.2).",
         "arms": [_line(arm, seeds) | {"as_good": _as_good(arm, arms)} for arm in arms],
         "verdict": "S = 8 is enough."} | summary,
    )  # fmt: skip
    return folder / name


def predictions(*arms: tuple[str, float]) -> list[dict]:
    """For every (arm, scale): half of the elements predicted; as many counted in `head`, half as many elsewhere."""
    return [
        {"arm": arm, "scale": scale, "tensor": tensor, "role": role, "elements": ELEMENTS,
         "predicted": 0.5, "counted": 0.5 if tensor == "head" else 0.25}
        for arm, scale in arms for tensor, role in TENSORS
    ]  # fmt: skip


def _line(arm: ScaleArm, seeds: int) -> dict:
    broken = arm.mean is None
    return {
        "arm": arm.name, "seeds": seeds, "mean": arm.mean, "low": None if broken else arm.mean - 0.004,
        "high": None if broken else arm.mean + 0.004, "diverged": seeds if broken else 0,
        "values": [arm.mean] * seeds, "lost_updates": 0.5, "flushed": 0.25, "subnormal": 0.125,
        "overflow": 0.0 if not broken else 0.001, "skipped": 3.5 if arm.scale == "dynamic" else 0,
    }  # fmt: skip


def _as_good(arm: ScaleArm, arms: Sequence[ScaleArm]) -> bool | None:
    """Within 2 % of FP32, the first arm; None without it. The program says so by its own definition."""
    base = arms[0]
    if arm is base or base.scale != "none":
        return None
    return arm.mean is not None and arm.mean >= 0.98 * base.mean


def _write_run(folder: Path, arm: ScaleArm, seed: int, experiment: str) -> None:
    named = {"format_version": 1, "experiment": experiment, "arm": arm.name, "seed": seed}
    kind = "fp32" if arm.name == "fp32" else "fp16"
    config = {"model": "detector", "loss_weight": 1 / 256, "loss_scale": arm.scale, "activation_gradient": kind}
    write_json(folder / "config.json", named | config)
    write_json(folder / "environment.json", {"version": "0.1.0"})
    broken = arm.mean is None
    run = {"diverged": broken, "diverged_step": STEPS if broken else None, "metric": arm.mean}
    run["final_scale"] = arm.ends_at or _first_scale(arm)
    write_json(folder / "summary.json", named | run)
    write_json_lines(folder / "metrics.jsonl", [_step(arm, seed, step) for step in range(1, STEPS + 1)])
    records = [
        histogram_record(step, role, 1.0, bell(CENTRES[role], 3), zeros=25_000, infinities=0)
        for step in OBSERVED
        for _, role in TENSORS
    ]
    write_json_lines(folder / "histograms.jsonl", records)
    (folder / "status").write_text("DONE\n")


def _first_scale(arm: ScaleArm) -> float:
    return {"dynamic": 65536.0, "none": 1.0}.get(arm.scale) or float(arm.scale)


def _step(arm: ScaleArm, seed: int, step: int) -> dict:
    scale = arm.ends_at if step == STEPS and arm.ends_at else _first_scale(arm)
    final = arm.mean or 0.0
    metric = final * step / STEPS + 0.01 * seed if step in EVALUATED else None
    record = {"step": step, "loss": 2.0 - step / STEPS, "metric": metric, "scale": scale, "skipped": False}
    if step in OBSERVED:
        update = {"tensor": "conv1.weight", "elements": 9, "nonzero": 9, "lost": 3, "applied_over_intended": 0.5}
        record["updates"] = [update]
        record["tensors"] = [_counters(scale, place, step) for place in range(len(TENSORS))]
    return record


def _counters(scale: float, place: int, step: int) -> dict:
    tensor, role = TENSORS[place]
    return {
        "tensor": tensor, "role": role, "scale": scale, "elements": ELEMENTS, "zeros": ZEROS,
        "flushed": flushed(scale, place, step), "subnormal": 80,
        "overflow": 8 if scale >= OVERFLOWS_FROM else 0, "nonfinite": 0, "max_abs": 0.5,
    }  # fmt: skip
