"""Table of docs/experiments/image-networks.md: what FP16 without loss scaling costs two ResNet-50."""

from __future__ import annotations

from pathlib import Path

from halfscope.results.json_files import read_json
from halfscope.results.recorded import CPU

NETWORKS = {"resnet50": "post-activation", "resnet50_preact": "pre-activation"}


def resnet_points(folder: Path, experiment: str) -> str:
    """Points of accuracy below FP32, and the flushed share of the gradients: a row for each weight.

    folder: experiments/recorded.
    """
    arms = {line["arm"]: line for line in read_json(folder / CPU / experiment / "summary.json")["arms"]}
    own = f"{next(iter(NETWORKS))}_fp16_s1_w"
    rows = [["weight of the loss"], ["---"]]
    for name in NETWORKS.values():
        rows[0] += [name, "flushed"]
        rows[1] += ["---", "---"]
    for divisor in (arm.removeprefix(own) for arm in arms if arm.startswith(own)):
        row = ["1" if divisor == "1" else f"1/{divisor}"]
        for network in NETWORKS:
            arm = arms[f"{network}_fp16_s1_w{divisor}"]
            row += [f"{arms[f'{network}_fp32']['mean'] - arm['mean']:.2f}", f"{100 * arm['flushed']:.1f} %"]
        rows.append(row)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
