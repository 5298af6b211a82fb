"""How far a tensor is from the one that it should be, in one pass of the compiled module."""

from __future__ import annotations

import torch

from halfscope import _core
from halfscope.torch.tensors.elements import dense

_TYPES = {torch.float32: "f32", torch.float64: "f64"}


def distance_sums(found: torch.Tensor, expected: torch.Tensor) -> _core.DistanceSums:
    """Sums over two tensors of one shape: of squares in float64 over the elements whose expected number is finite.

    Types of 16 bits are widened. Raises Unreadable for a tensor whose elements are in no memory.
    """
    near = [dense(tensor) for tensor in (found, expected)]
    type_ = torch.float64 if torch.float64 in {tensor.dtype for tensor in near} else torch.float32
    flat = [tensor.reshape(-1).to("cpu", type_).contiguous() for tensor in near]
    one, other = ((tensor.data_ptr(), tensor.numel(), _TYPES[type_]) for tensor in flat)
    return _core.distance_sums(one, other)
