"""Checkpoints as torch.save writes them, made without PyTorch."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import numpy as np


def _text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def _integer(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def _tuple(*elements: bytes) -> bytes:
    return b"(" + b"".join(elements) + b"t"


def _tensor(key: str, array: np.ndarray) -> bytes:
    """A call of _rebuild_tensor_v2 with a storage, which the archive holds as a file of its own."""
    storage = _tuple(_text("storage"), b"ctorch\nFloatStorage\n", _text(key), _text("cpu"), _integer(array.size)) + b"Q"
    strides = [stride // array.itemsize for stride in array.strides]
    hooks = b"ccollections\nOrderedDict\n)R"
    arguments = _tuple(
        storage, _integer(0), _tuple(*map(_integer, array.shape)), _tuple(*map(_integer, strides)), b"\x89", hooks
    )
    return b"ctorch._utils\n_rebuild_tensor_v2\n" + arguments + b"R"


def write_checkpoint(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """A state_dict of FP32 arrays, contiguous in C's order."""
    items = [_text(name) + _tensor(str(place), array) for place, (name, array) in enumerate(arrays.items())]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}(" + b"".join(items) + b"u.")
        for place, array in enumerate(arrays.values()):
            archive.writestr(f"archive/data/{place}", array.astype("<f4").tobytes())
        archive.writestr("archive/version", "3\n")
