"""The formats that another package reads, one row each."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfscope.foreign import distributed_folder, hdf5_file, onnx_file, zero_shards


@dataclass(frozen=True)
class ForeignContent:
    """Arrays by name, and the other content of the file by name, with the reason why it is left out."""

    tensors: Mapping[str, Any]
    skipped: Mapping[str, str]


@dataclass(frozen=True)
class ForeignFormat:
    """A format: how a path is recognised, the package that reads it, and the reader.

    read: (tensors, skipped) of a path. Raises whatever the package does of a damaged file.
    """

    title: str
    package: str
    is_of: Callable[[Path], bool]
    read: Callable[[Path], tuple[dict[str, Any], dict[str, str]]]


FORMATS = (
    ForeignFormat("ONNX", "onnx", onnx_file.is_of, onnx_file.read),
    ForeignFormat("HDF5", "h5py", hdf5_file.is_of, hdf5_file.read),
    ForeignFormat("a distributed checkpoint of PyTorch's", "torch", distributed_folder.is_of, distributed_folder.read),
    ForeignFormat("shards of DeepSpeed's ZeRO-3", "torch", zero_shards.is_of, zero_shards.read),
)


def foreign_format(path: str | os.PathLike[str]) -> ForeignFormat | None:
    """The row of the path; None of a file that halfscope reads itself, or refuses."""
    place = Path(path)
    return next((format for format in FORMATS if place.exists() and format.is_of(place)), None)


def read_foreign(path: str | os.PathLike[str], format: ForeignFormat) -> ForeignContent:
    """Raises ValueError, in one line with the path, where the package is not installed, and of a damaged file."""
    if importlib.util.find_spec(format.package) is None:
        raise ValueError(
            f"{os.fspath(path)}: {format.title} is read through the package {format.package}, which is not installed: "
            f"pip install {format.package}"
        )
    try:
        return ForeignContent(*format.read(Path(path)))
    except Exception as error:  # whatever the package raises of a damaged file
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ValueError(f"{os.fspath(path)}: not read as {format.title}: {why}") from error
