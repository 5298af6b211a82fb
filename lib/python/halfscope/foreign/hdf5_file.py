"""Datasets of HDF5 files, as Keras writes them, by their path in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

SIGNATURE = b"\x89HDF\r\n\x1a\n"
WIDTHS = (2, 4, 8)  # bytes of the floats that are read


def is_of(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SIGNATURE)) == SIGNATURE


def read(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    import h5py

    tensors, skipped = {}, {}

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset):
            return
        if item.dtype.kind == "f" and item.dtype.itemsize in WIDTHS and item.shape is not None:
            tensors[name] = item[()].astype(item.dtype.newbyteorder("="), copy=False)
        else:
            skipped[name] = f"dtype {item.dtype}"

    with h5py.File(path, "r") as file:
        file.visititems(visit)
    return tensors, skipped
