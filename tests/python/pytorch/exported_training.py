"""Training runs of the simulator as files, for peers to repeat."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build/release/tests/halfscope_export_training"


def export_training(path: Path, *settings: str) -> dict[str, torch.Tensor]:
    """Weights, batches, learning rates and losses of a run with `settings`, "key=value" each."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    subprocess.run([PROGRAM, path, *settings], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return read_safetensors(path)


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
