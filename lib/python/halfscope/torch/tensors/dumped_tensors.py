"""Tensors for a file of safetensors: whole copies in CPU memory, and the path that they are written to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from halfscope.torch.tensors.elements import Unreadable, elements_of


def safetensors_package() -> Any:
    """Raises ImportError without it."""
    try:
        import safetensors.torch
    except ImportError:
        raise ImportError("a dump is a file of safetensors: pip install safetensors") from None
    return safetensors


def check_writable(path: Path, door: str) -> None:
    """Raises ImportError without the package safetensors, ValueError where `path` cannot be written to.

    door: the function that was called.
    """
    safetensors_package()
    if path.suffix != ".safetensors":
        raise ValueError(f"{door}: {path} is no file of safetensors; give a path such as dump.safetensors")
    if not path.parent.is_dir():
        raise ValueError(f"{door}: {path.parent} is no folder; make it first")


def whole_copy(tensor: Any) -> torch.Tensor:
    """A copy of all elements, without a gradient. Raises Unreadable for a tensor that such a file cannot hold.

    Shards of a DTensor are gathered, for which all ranks of its mesh must call this.
    """
    if tensor.is_nested or tensor.layout is not torch.strided:
        raise Unreadable(f"a {tensor.layout} tensor")
    whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return elements_of(whole).to("cpu", copy=True, memory_format=torch.contiguous_format)
