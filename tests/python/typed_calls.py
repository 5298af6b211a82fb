"""Calls whose types mypy checks, as pyproject.toml tells it: results are arrays of the caller's own library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import halfscope

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
    from typing_extensions import assert_type


def of_numpy(array: NDArray[np.float16]) -> None:
    assert_type(halfscope.round(array, "fp16"), "NDArray[np.float32]")
    assert_type(halfscope.matmul(array, array, order="tensor_core(hopper)"), "NDArray[np.float32]")
    assert_type(halfscope.sum(array, 0), "NDArray[np.float32]")
    assert_type(halfscope.sum(array, order="fp16_sequential"), float)
    halfscope.round(array, "bf16") + 1


def of_torch(tensor: torch.Tensor) -> None:
    assert_type(halfscope.round(tensor, "fp16", straight_through=True), "torch.Tensor")
    assert_type(halfscope.matmul(tensor, tensor), "torch.Tensor")
    assert_type(halfscope.sum(tensor, -1), "torch.Tensor")
    halfscope.round(tensor, "bf16") + 1


def of_any(array: Any) -> None:
    assert_type(halfscope.__version__, str)
    assert_type(halfscope.dot(array, array), float)
