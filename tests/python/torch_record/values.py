"""Values of Python and PyTorch as JSON that has all their bits, in which a person can read a difference."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

from halfscope import Histogram
from halfscope.torch.events.source import Site
from torch_record.sources import stable

WHOLE = 256  # elements, up to which a tensor is written whole


def plain(value: Any) -> Any:
    """Floats in hexadecimal, texts by line, tensors by their bits; raises TypeError for a value of another kind."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if type(value) is float:
        return value.hex()
    if isinstance(value, str):
        lines = stable(value).split("\n")
        return lines if len(lines) > 1 else lines[0]
    for kind, convert in CONVERSIONS.items():
        if isinstance(value, kind):
            return convert(value)
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "numbers"):  # counters of the compiled module
        return [int(number) for number in value.numbers()]
    raise TypeError(f"the record has no words for a {type(value).__qualname__}; give it one in values.py")


def _mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {" ".join(map(str, key)) if isinstance(key, tuple) else str(key): plain(each) for key, each in value.items()}


def _sequence(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return _mapping(value._asdict())
    each = sorted(value) if isinstance(value, (set, frozenset)) else value
    return [plain(one) for one in each]


def _tensor(tensor: torch.Tensor) -> str:
    """Type, shape and the bits of each element; of a large tensor a digest and the norm."""
    whole = tensor.detach().cpu().contiguous()
    kind = f"{str(whole.dtype).removeprefix('torch.')} {tuple(whole.shape)}"
    content = whole.flatten().view(torch.uint8).numpy().tobytes() if whole.numel() else b""
    if whole.numel() <= WHOLE:
        width = whole.element_size()
        return f"{kind}: " + " ".join(
            content[place : place + width][::-1].hex() for place in range(0, len(content), width)
        )
    norm = float(whole.double().norm()).hex()
    return f"{kind}: sha256 {hashlib.sha256(content).hexdigest()[:16]}, norm {norm}"


CONVERSIONS: dict[Any, Callable[[Any], Any]] = {
    torch.Tensor: _tensor,
    Histogram: lambda found: plain(found.record()),
    Site: lambda site: plain(str(site)),
    np.ndarray: lambda array: _tensor(torch.from_numpy(array)),
    np.generic: lambda number: plain(number.item()),
    Mapping: _mapping,
    (list, tuple, set, frozenset): _sequence,
    (torch.dtype, torch.device): str,
}
