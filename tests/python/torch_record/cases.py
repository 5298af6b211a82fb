"""All cases of the record: every door for every victim and small model, trainings, searches and ranks."""

from __future__ import annotations

import platform
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from torch_record.doors import DOORS, failure, linted
from torch_record.sources import victims
from torch_record.values import plain

Case = Callable[[], dict[str, Any]]


def all_cases() -> dict[str, Case]:
    """By name, "DOOR/MODEL"."""
    from torch_record.networks import HALF, NETWORKS, emulated_cases, watched_cases
    from torch_record.processes import rank_cases
    from torch_record.searches import search_cases

    models = {f"{name}, {format}": partial(with_format, make, format) for name, make in {**NETWORKS, **HALF}.items()
              for format in ("fp16", "bf16")}  # fmt: skip
    cases: dict[str, Case] = {
        f"{door}/{name}": partial(see, make) for door, see in DOORS.items() for name, make in victims().items()
    }
    cases |= {f"diagnose/{name}": partial(DOORS["diagnose"], make) for name, make in models.items()}
    cases |= {f"lint/{name}": partial(linted, make) for name, make in models.items()}
    return {**cases, **emulated_cases(), **watched_cases(), **search_cases(), **rank_cases()}


def with_format(make: Callable[[], Any], format: str) -> tuple[Any, Any, dict[str, Any]]:
    """A network as a victim is."""
    model, loss = make()
    return model, loss, {"format": format}


def record(case: Case) -> Any:
    """The values of a case, or the exception that it ends with."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(False)
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    try:
        return plain(case())
    except Exception as error:
        return plain(failure(error))


def environment() -> dict[str, str]:
    """Versions and instructions on which numbers depend."""
    found = {"torch": torch.__version__, "python": platform.python_version()}
    found["instructions"] = torch.backends.cpu.get_cpu_capability()
    for name in ("numpy", "transformers", "torchvision"):
        found[name] = _version(name)
    return found


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
