"""Arithmetic of a device: rounding, products, sums and counts of tensors, by one object for each type of device."""

from __future__ import annotations

from ctypes import c_ubyte
from typing import Any
from zlib import crc32

import torch

import halfscope
from halfscope import Histogram, UpdateCounters, _core
from halfscope._core import count_floats
from halfscope.torch.private import without_modes
from halfscope.torch.tensors.elements import address_of_floats


class Host:
    """Arithmetic of the compiled module on tensors in CPU memory; results lie there too."""

    def near(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor, in the memory in which this object computes."""
        return tensor

    def write(self, near: torch.Tensor, tensor: torch.Tensor) -> None:
        """Numbers of a tensor that were changed near, in the tensor itself: no operation of a mode's."""
        if near is not tensor:
            with without_modes():
                tensor.copy_(near)

    def away(self, result: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """A result beside `like`, the tensor that was asked for."""
        return result if result.device == like.device else result.to(like.device)

    def round(self, tensor: torch.Tensor, quantizer: str, **options: Any) -> torch.Tensor:
        """A copy in a format; options: as `halfscope.round` has them."""
        near = self.near(tensor.detach()).float().contiguous()
        rounded: torch.Tensor = halfscope.round(near, quantizer, **options)
        return self.away(rounded, tensor)

    def cast(self, cast: Any, near: torch.Tensor, name: str, options: dict[str, Any]) -> Any:
        """Rounds in place a tensor that is near and without gaps, by a `_core.Cast`; returns its counts, if asked."""
        return cast.round(address_of_floats(near), near.numel(), name, **options)

    def cast_blocks(self, cast: Any, near: torch.Tensor, name: str, options: dict[str, Any]) -> Any:
        """Casts a matrix (..., summed axis) by a `_core.OperandCast`, as `cast` does elements."""
        rows, columns = near.numel() // near.shape[-1], near.shape[-1]
        return cast.round(address_of_floats(near), rows, columns, name, **options)

    def matmul(self, a: torch.Tensor, b: torch.Tensor, order: str) -> torch.Tensor:
        """Products of matrices with equal leading axes; the result is near."""
        result: torch.Tensor = _core.matmul(self.near(a), self.near(b), order=order)
        return result

    def gather_matmul(self, values: torch.Tensor, indices: tuple[Any, Any], right: torch.Tensor, order: str) -> Any:
        """Rows of elements of `values`, by their first and by their other positions, times a matrix; all are near."""
        return _core.gather_matmul(values, *indices, right, order=order)

    def sum(self, rows: torch.Tensor, order: str) -> torch.Tensor:
        """Sums over the first axis; the result is near."""
        result: torch.Tensor = _core.sum(self.near(rows).contiguous(), 0, order=order)
        return result

    def histogram(self, near: torch.Tensor, format: str) -> Histogram:
        return count_floats([(address_of_floats(near), near.numel(), "f32")], format)[0]

    def updates(self, weights: torch.Tensor, updates: torch.Tensor, quantizer: str) -> UpdateCounters:
        """Updates of weights that a format loses."""
        return halfscope.lost_updates(self.near(weights).contiguous(), self.near(updates).contiguous(), quantizer)

    def checksum(self, near: torch.Tensor) -> int:
        """Checksum of the bytes of a tensor that is near and without gaps.

        By address: FSDP2 cannot free memory that numpy has seen.
        """
        return crc32((c_ubyte * (near.numel() * near.element_size())).from_address(near.data_ptr()))


class ThroughHost(Host):
    """Arithmetic of the host on copies of a device's tensors."""

    def near(self, tensor: torch.Tensor) -> torch.Tensor:
        with without_modes():  # in a hook of a gradient it would be an operation of the training
            return tensor.cpu()


# By type of device; a tensor of any other one is brought to the host. A device's own arithmetic is a line here.
devices: dict[str, Host] = {"cpu": Host()}
_ELSEWHERE = ThroughHost()


def device_of(tensor: torch.Tensor) -> Host:
    """The arithmetic of the memory that a tensor is in."""
    return devices.get(tensor.device.type, _ELSEWHERE)
