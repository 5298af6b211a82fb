"""Training runs of the simulator as files, for peers to repeat."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[4]
PROGRAM = ROOT / "build/release/tests/halfscope_export_training"


def export_training(path: Path, *settings: str) -> dict[str, torch.Tensor]:
    """Weights, batches, learning rates and losses of a run with `settings`, "key=value" each."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    subprocess.run([PROGRAM, path, *settings], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return read_safetensors(path)


def leaves_of(exported: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The model's weights in float64, without "model." before their names, which gradients are wanted of."""
    return {
        name.removeprefix("model."): values.double().requires_grad_()
        for name, values in exported.items()
        if name.startswith("model.")
    }


def check_gradients(exported: dict[str, torch.Tensor], leaves: dict[str, torch.Tensor]) -> None:
    """Compares gradients with those that a step of SGD at a rate of 1 took off the exported weights."""
    for name, leaf in leaves.items():
        ours = exported[f"model.{name}"].double() - exported[f"after.model.{name}"].double()
        # Rounding error of a gradient taken from the difference of two weights; a key's bias has a gradient of 0.
        rounding = 2.0**-23 * (float(leaf.detach().norm()) + 1)
        assert leaf.grad is not None, name
        assert float((ours - leaf.grad).norm()) < 1e-4 * float(leaf.grad.norm()) + rounding, name


def check_step(exported: dict[str, torch.Tensor], leaves: dict[str, torch.Tensor], loss: torch.Tensor) -> None:
    """Compares the loss and every gradient with those of the simulator's step."""
    loss.backward()
    assert math.isclose(loss.item(), exported["losses"].item(), rel_tol=1e-5)
    check_gradients(exported, leaves)


def read_safetensors(path: Path) -> dict[str, torch.Tensor]:
    contents = bytearray(path.read_bytes())
    start = 8 + int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8:start])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        flat = (
            torch.frombuffer(contents[start + first : start + last], dtype=torch.float32)
            if last > first
            else torch.zeros(0)
        )
        tensors[name] = flat.reshape(entry["shape"])
    return tensors
