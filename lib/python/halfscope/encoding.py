"""`halfscope.encode` and `decode`: codes of formats, with the scales of block formats, and packed FP4."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from operator import index
from typing import Any

import numpy as np

from halfscope import _core
from halfscope.arithmetic import note_look_alike, refuse_gradients


@dataclass(frozen=True)
class Encoded:
    """An array in a format: what `encode` returns and `decode` takes.

    format: its name, as `encode` was given it.
    codes: one for each element, in the array's shape and framework: uint8 up to 8 bits, else uint16 or uint32.
    scales: one for each block, None of a format without blocks. uint8 codes of E8M0 or E4M3, or float32. Blocks of one
        row: the array's shape with the number of blocks in the place of `axis`. Tiles: (row blocks, column blocks) of
        the matrix whose columns run along `axis` and whose rows are all other axes, in their order.
    tensor_scale: what all numbers are multiplied by besides, None without one.
    axis: the one along which blocks run.
    """

    format: str
    codes: Any
    scales: Any = None
    tensor_scale: float | None = None
    axis: int = -1

    def packed(self) -> Any:
        """The codes of a 4-bit format, two in a byte along `axis`.

        The first is in the low nibble, as torchao, TransformerEngine, ModelOpt and safetensors' F4 have it. A last code
        without a partner has a 0 in the high nibble.

        Returns uint8 of the codes' shape with the axis halved, rounded up. Raises ValueError for other formats.
        """
        self._require_nibbles("packed")
        codes = np.moveaxis(_numpy(self.codes), self.axis, -1)
        if codes.shape[-1] % 2:
            codes = np.concatenate([codes, np.zeros_like(codes[..., :1])], axis=-1)
        return _like(np.moveaxis(codes[..., ::2] | codes[..., 1::2] << 4, -1, self.axis), self.codes)

    def unpacked(self, length: int | None = None) -> Encoded:
        """The same with codes that `packed` made, or a file holds, one for each element again.

        length: elements along `axis`; twice the bytes unless given. Raises ValueError for a format without 4 bits and
        for a length that the bytes do not have.
        """
        self._require_nibbles("unpacked")
        packed = np.moveaxis(_numpy(self.codes).view(np.uint8), self.axis, -1)
        codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)
        length = codes.shape[-1] if length is None else index(length)
        if not codes.shape[-1] - 1 <= length <= codes.shape[-1]:
            most = codes.shape[-1]
            raise ValueError(f"unpacked: length {length} of {packed.shape[-1]} bytes; give {most - 1} or {most}")
        return replace(self, codes=_like(np.moveaxis(codes[..., :length], -1, self.axis), self.codes))

    def _require_nibbles(self, function: str) -> None:
        bits = _core.code_bits(self.format)
        if bits != 4:
            raise ValueError(
                f"{function}: codes of {self.format} have {bits} bits; two in a byte are those of 4-bit formats"
            )


def encode(array: Any, format: str, *, axis: int = -1, seed: int = 0, step: int = 0) -> Encoded:
    """The codes of an array in a format, and the scales of its blocks.

    array: any shape, float32, float16 or bfloat16, in CPU memory; NumPy, PyTorch, JAX, or what speaks DLPack.
    format: one as `round` takes it, or a block format: "mxfp8_e4m3", "mxfp4/floor", "nvfp4",
        "block(fp8_e4m3, 1x64, e8m0/rceil)". A block's elements saturate.
    axis: the one along which blocks run. A last block that the array does not fill counts as if zeros followed.
    seed, step: which random numbers stochastic rounding draws.

    Returns `Encoded`. Raises ValueError for a format or an axis that there is not, and for tensors that need a
    gradient; TypeError as `round` does.
    """
    refuse_gradients("encode", array)
    note_look_alike(format)
    codes, scales, tensor_scale = _core.encode(array, format, axis=index(axis), seed=seed, step=step)
    return Encoded(format, codes, scales, tensor_scale, index(axis))


def decode(encoded: Encoded) -> Any:
    """The numbers of `encoded`, which `round` gives too: code times scale times tensor scale, each product in FP32.

    Returns float32 of the codes' shape and framework. Raises ValueError for scales of another shape than `Encoded`
    says, and for a block format without scales.
    """
    scales = encoded.scales
    if scales is not None:
        scales = _numpy(scales)
        scales = scales.view(np.uint32) if scales.dtype == np.float32 else scales.view(np.uint8).astype(np.uint32)
        scales = np.ascontiguousarray(scales)
    return _core.decode(
        np.ascontiguousarray(_numpy(encoded.codes), dtype=np.uint32),
        scales,
        1.0 if encoded.tensor_scale is None else float(encoded.tensor_scale),
        encoded.format,
        axis=encoded.axis,
        like=encoded.codes,
    )


def _numpy(array: Any) -> np.ndarray:
    """The array as NumPy's; PyTorch's types of 4 and 8 bits, which NumPy lacks, as bytes."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        array = array.detach().cpu()
        return array.numpy() if array.element_size() > 1 else array.view(torch.uint8).numpy()
    return np.asarray(array)


def _like(array: np.ndarray, like: Any) -> Any:
    """The NumPy array as one of like's framework."""
    array = np.ascontiguousarray(array)
    module = type(like).__module__
    if module.startswith("torch"):
        return sys.modules["torch"].from_numpy(array)
    if module.startswith("jax"):
        return sys.modules["jax"].numpy.asarray(array)
    return array
