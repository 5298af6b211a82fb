"""Free memory of this machine, and the refusal of work that will not fit into it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import torch

from halfscope.torch.tensors.elements import ORDINARY

_MEMINFO = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # a container's limits, version 2
_GB = 1e9


def free_bytes() -> int | None:
    """Bytes that a process can still have without swapping, by Linux and by its container; None on other systems."""
    try:
        kilobytes = re.search(r"^MemAvailable: +(\d+) kB", _MEMINFO.read_text(), re.M)
    except OSError:
        return None
    if kilobytes is None:
        return None
    free = 1024 * int(kilobytes[1])
    try:
        limit, used = ((_GROUP / f"memory.{name}").read_text().strip() for name in ("max", "current"))
    except OSError:
        return free
    return free if limit == "max" else min(free, max(0, int(limit) - int(used)))


def bytes_on_host(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of whole tensors in this machine's memory; of a tensor that ranks share, which this cannot know, none."""
    return sum(each.nbytes for each in tensors if each.device.type == "cpu" and type(each) in ORDINARY)


def trained_bytes(model: torch.nn.Module) -> int:
    """Bytes of the weights that a training changes, in this machine's memory."""
    return bytes_on_host(weight for weight in model.parameters() if weight.requires_grad)


def refuse_shortage(door: str, needed: int, instead: str) -> None:
    """needed: bytes beside the model, at least. instead: what to type.

    Raises MemoryError, in the name of the door, where less is free.
    """
    free = free_bytes()
    if free is not None and needed > free:
        raise MemoryError(
            f"{door}: needs {needed / _GB:.3g} GB or more beside the model, and {free / _GB:.3g} GB are free; {instead}"
        )
