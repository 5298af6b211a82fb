"""Every kind of array that a caller may hand over, and what is none that can be counted."""

from __future__ import annotations

import numpy as np

from dlpack import CUDA, Exporter


def grid() -> np.ndarray:
    """Numbers of float16, so that NumPy can round them once more."""
    return np.random.default_rng(3).normal(0, 1, (4, 6, 5)).astype(np.float16).astype(np.float32)


def read_only() -> np.ndarray:
    array = grid()
    array.flags.writeable = False
    return array


RIGHT = {
    "contiguous": grid,
    "transposed": lambda: grid().transpose(2, 0, 1),
    "reversed": lambda: grid()[:, ::-1],
    "strided": lambda: grid()[1::2, ::3, ::-2],
    "broadcast": lambda: np.broadcast_to(grid()[0, 0], (3, 5)),
    "empty": lambda: np.zeros((3, 0, 2), np.float32),
    "0-d": lambda: np.array(1.375, np.float32),
    "scalar": lambda: np.float32(1.375),
    "read-only": read_only,
    "float16": lambda: grid().astype(np.float16),
    "memoryview": lambda: memoryview(grid()),
}

# Arrays that no function takes, the error, and words of its message.
WRONG = {
    "integers": (lambda: np.zeros(3, np.int64), TypeError, "array of int64"),
    "complex": (lambda: np.zeros(3, np.complex64), TypeError, "array of complex64"),
    "booleans": (lambda: np.zeros(3, bool), TypeError, "array of bool8"),
    "swapped bytes": (lambda: np.zeros(3, ">f4"), TypeError, "cannot read ndarray of >f4"),
    "objects": (lambda: np.array([None]), TypeError, "cannot read ndarray of object"),
    "list": (lambda: [1.0], TypeError, "cannot read list"),
    "number": (lambda: 1.0, TypeError, "cannot read float"),
    "None": (lambda: None, TypeError, "cannot read NoneType"),
    "GPU": (lambda: Exporter(np.zeros(3, np.float32), device=CUDA), ValueError, "memory of a device"),
}
