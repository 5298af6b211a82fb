"""Trainings that are repeated: bisect, ablate and probe_scales."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

import test_ablation
import test_scale_probe
from halfscope.torch import ablate, emulate, probe_scales
from torch_record.doors import answer, files_of
from torch_record.networks import NETWORKS

UNITS = {"layers": "fp16_mixed", "operations": "fp16_mixed", "kinds": "fp16_mixed", "products": "mxfp4"}


def bisected(network: str, units: str, policy: str) -> dict[str, Any]:
    """Loss after two steps, near that of FP32."""
    model, loss_of = NETWORKS[network]()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def train() -> float:
        for _ in range(2):
            optimizer.zero_grad()
            (loss_of() * 2.0**-12).backward()
            optimizer.step()
        return float(loss_of().detach())

    with emulate(model, policy, optimizer=optimizer, compare_steps=()) as emulation:
        train()
    found = answer(lambda: emulation.bisect(train, units=units, within=1e-4))
    return {"found": found, "text": str(found)}


def ablated() -> dict[str, Any]:
    lines: list[str] = []
    found = ablate(
        test_ablation.make, test_ablation.train, ["fp32", "fp16_mixed", "fp16_pure", "mxfp8"], loss_scale=[1, 2**20],
        seeds=2, metric="loss", every=4, progress=lines.append,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.redirect_stdout(io.StringIO()):
            found.write(Path(folder) / "mine")
        files = files_of(Path(folder))
    metrics = {arm.name: list(arm.metrics) for arm in found.arms}
    return {"table": str(found), "text": found.verdict, "progress": lines, "metrics": metrics, "files": files}


def probed(policy: str | None) -> dict[str, Any]:
    model = test_scale_probe.network()
    found = probe_scales(model, test_scale_probe.closure(model, 2.0**-12), policy=policy)
    return {"probes": found, "left": model.state_dict()}


def search_cases() -> dict[str, Callable[[], dict[str, Any]]]:
    networks = ("small encoder", "lstm")
    chosen: dict[str, Callable[[], dict[str, Any]]] = {
        f"bisect/{name}, {units}": partial(bisected, name, units, policy)
        for name in networks
        for units, policy in UNITS.items()
    }
    chosen |= {f"probe/{policy or 'autocast'}": partial(probed, policy) for policy in (None, "fp16_mixed", "bf16")}
    return {**chosen, "ablate/four policies": ablated}
