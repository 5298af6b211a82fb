"""Tensors of a dump in the order in which they were computed, and its weights."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfscope.tensor_files import tensors_of

WEIGHT = "weight:"  # begins the name of a weight; a computed tensor's name begins with its place, "00012:"
_PLACE = re.compile(r"^\d{5}:")


@dataclass(frozen=True)
class Dump:
    """Tensors by name, in float32; computed ones in their order."""

    computed: dict[str, np.ndarray]
    weights: dict[str, np.ndarray]


def computed_name(place: int, name: str) -> str:
    """A name that sorts by its place."""
    return f"{place:05}:{name}"


def dump_of(given: Any, argument: str) -> Dump:
    """A dump of arrays by name, or of files as `halfscope.analyze` takes them.

    argument: its name. Names without a place keep the order of the mapping or the file. Raises ValueError for a
    file that cannot be read, and for a dump without a tensor of floating-point numbers.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # integers are left out
        tensors = tensors_of(given)
    if not isinstance(tensors, Mapping):
        raise TypeError(
            f"compare_dumps: {argument} is a {type(given).__name__}; give arrays by name, or paths of files"
        )
    arrays = {name: array for name, array in _named(tensors) if array.size}
    if not arrays:
        raise ValueError(f"compare_dumps: {argument} holds no tensor of floating-point numbers")
    weights = {name.removeprefix(WEIGHT): array for name, array in arrays.items() if name.startswith(WEIGHT)}
    computed = [name for name in arrays if not name.startswith(WEIGHT)]
    if all(map(_PLACE.match, computed)):
        computed.sort()
    return Dump({_PLACE.sub("", name, count=1): arrays[name] for name in computed}, weights)


def _named(tensors: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays under the names of their files, where these are no name of two files."""
    origins = {name: origin for name, (origin, _) in getattr(tensors, "origins", {}).items()}
    twice = {name for name, count in Counter(origins.values()).items() if count > 1}
    for name, tensor in tensors.items():
        array = _array(tensor)
        if array is not None:
            origin = origins.get(name, str(name))
            yield (str(name) if origin in twice else origin), array


def _array(tensor: Any) -> np.ndarray | None:
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().float().cpu().numpy() if tensor.is_floating_point() else tensor.cpu().numpy()
    array = np.asarray(tensor)
    return array.astype(np.float32, copy=False) if array.dtype.kind == "f" or array.dtype.name == "bfloat16" else None
