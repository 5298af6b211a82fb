"""Arrays that NumPy cannot make, handed over by DLPack: bfloat16, and one that claims to lie in a GPU's memory."""

from __future__ import annotations

import ctypes

import numpy as np

CPU, CUDA = 1, 2
FLOAT, BFLOAT = 2, 4


class _Tensor(ctypes.Structure):
    """DLTensor, then the two pointers that make it a DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
    ]  # fmt: skip


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exporter:
    """Shows the memory of `array` as elements of another type, or on another device."""

    def __init__(self, array: np.ndarray, code: int = FLOAT, device: int = CPU) -> None:
        self._array = array
        self._shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self._tensor = _Tensor(
            data=array.ctypes.data, device_type=device, ndim=array.ndim, code=code, bits=8 * array.itemsize, lanes=1,
            shape=ctypes.addressof(self._shape),
        )  # fmt: skip

    def __dlpack__(self, **_: object) -> object:
        return _new_capsule(ctypes.addressof(self._tensor), b"dltensor", None)


def bfloat16(values: np.ndarray) -> Exporter:
    """float32 numbers whose lowest 16 bits are zero, as bfloat16."""
    assert not (values.view(np.uint32) & 0xFFFF).any()
    return Exporter((values.view(np.uint32) >> 16).astype(np.uint16), BFLOAT)
