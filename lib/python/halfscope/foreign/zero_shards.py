"""Checkpoints of DeepSpeed's ZeRO-3: weights put together from the flat FP32 vectors of all ranks.

A weight of n elements lies as ceil(n / ranks) of them in the vector of each rank, the last ones padded with zeros.
The zeros are left out, as deepspeed.utils.zero_to_fp32 does. Weights that are frozen lie in fragments.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from halfscope.foreign.closed_pickle import load_closed

OPTIMIZER, MODEL = "*zero_pp_rank_*_optim_states.pt", "*zero_pp_rank_*_model_states.pt"
GROUPS = "fp32_flat_groups"  # in stage 3; the stages before it have others


def is_of(path: Path) -> bool:
    """A folder with files of each rank for the optimizer and for the model: other stages have one of the model."""
    return path.is_dir() and any(path.glob(OPTIMIZER)) and any(path.glob(MODEL))


def read(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    models = [load_closed(file) for file in _by_rank(path, MODEL)]
    states = [load_closed(file)["optimizer_state_dict"] for file in _by_rank(path, OPTIMIZER)]
    for state in states:
        if GROUPS not in state:
            raise ValueError(f"no {GROUPS}: another stage than 3; run zero_to_fp32.py . model.pt in the folder")
        ranks = state.get("partition_count", len(states))
        if ranks != len(states):
            raise ValueError(f"{len(states)} optimizer files of {ranks} ranks; give all of them in one folder")
    shapes = {name: shape for group in models[0]["param_shapes"] for name, shape in group.items()}
    tensors = _joined([_flat(state[GROUPS]) for state in states], shapes)
    for name, shape in (models[0].get("frozen_param_shapes") or {}).items():
        tensors[name] = _whole([model["frozen_param_fragments"][name].flatten() for model in models], shape)
    buffers = {name: value for name, value in models[0].get("module", {}).items() if getattr(value, "numel", int)() > 0}
    return {**buffers, **tensors}, {}


def _by_rank(path: Path, pattern: str) -> list[Path]:
    return sorted(path.glob(pattern), key=lambda file: int(re.findall(r"zero_pp_rank_(\d+)_", file.name)[0]))


def _flat(groups: Any) -> Any:
    import torch

    return torch.cat([group.flatten() for group in groups]) if isinstance(groups, (list, tuple)) else groups.flatten()


def _joined(vectors: list[Any], shapes: dict[str, Any]) -> dict[str, Any]:
    parts = {name: math.ceil(math.prod(shape) / len(vectors)) for name, shape in shapes.items()}
    needed = sum(parts.values())
    for rank, vector in enumerate(vectors):
        if vector.numel() < needed:
            raise ValueError(f"rank {rank} has {vector.numel()} elements, and the shapes of the model need {needed}")
    tensors, at = {}, 0
    for name, shape in shapes.items():
        tensors[name] = _whole([vector[at : at + parts[name]] for vector in vectors], shape)
        at += parts[name]
    return tensors


def _whole(parts: list[Any], shape: Any) -> Any:
    import torch

    return torch.cat(parts)[: math.prod(shape)].reshape(tuple(shape))
