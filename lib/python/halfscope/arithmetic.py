"""Rounding, products and sums: typed per array library, and refusing tensors whose gradient would be lost."""

from __future__ import annotations

import sys
import warnings
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

from halfscope import _core
from halfscope.old_words import without_old_arguments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SupportsDLPack(Protocol):
    """PyTorch's and JAX's arrays, whichever of the two is installed; results are of the same type."""

    def __dlpack__(self, *arguments: Any, **options: Any) -> Any: ...


Tensor = TypeVar("Tensor", bound=SupportsDLPack)

dot = without_old_arguments(_core.dot)


@overload
def round(
    array: NDArray[Any], format: str, *, axis: int = -1, seed: int = 0, step: int = 0, straight_through: bool = False
) -> NDArray[np.float32]: ...
@overload
def round(
    array: Tensor, format: str, *, axis: int = -1, seed: int = 0, step: int = 0, straight_through: bool = False
) -> Tensor: ...
def round(
    array: Any, format: str, *, axis: int = -1, seed: int = 0, step: int = 0, straight_through: bool = False
) -> Any:
    """Rounds every element to a format, with a scale for each block where the format has blocks.

    array: any shape, float32, float16 or bfloat16; NumPy, PyTorch, JAX (CPU), or what speaks DLPack, which becomes
        NumPy's. A CUDA tensor of PyTorch where the package was built with CUDA.
    format: "FORMAT[/ROUNDING][/OVERFLOW]", such as "fp16", "fp8_e4m3/stochastic/saturate", "e5m7/toward_zero"; or a
        block format, "NAME[/RULE][/ROUNDING]", such as "mxfp8_e4m3", "mxfp4/floor", "nvfp4", "fp8_128x128".
    axis: the one along which blocks run; tiles have their rows along all other axes. A last block that the array does
        not fill counts as if zeros followed.
    seed, step: which random numbers stochastic rounding draws; the same ones give the same bits.
    straight_through: a PyTorch tensor that needs a gradient gets it, as if nothing had been rounded.

    Returns a float32 array of the same shape and framework, which holds the numbers of any format exactly.
    Raises TypeError for float64 (rounding twice is not rounding), integers and what is no array; ValueError for an
    unknown format, an axis that the array does not have, arrays in a GPU's memory that is out of reach or shall have
    blocks, and for a tensor that needs a gradient unless straight_through.
    """
    note_look_alike(format)
    if not _needs_gradient(array):
        return _core.round(array, format, axis=index(axis), seed=seed, step=step)
    if not straight_through:
        raise ValueError(
            "round: the tensor needs a gradient, and rounding has none; give straight_through=True to pass it on "
            "unchanged, or tensor.detach()"
        )
    from halfscope.straight_through import StraightThrough

    return StraightThrough.apply(array, format, index(axis), seed, step)


@overload
def matmul(
    a: NDArray[Any], b: Any, *, order: str = "fp32_fused", operands: str | tuple[str, str] | None = None
) -> NDArray[np.float32]: ...
@overload
def matmul(
    a: Tensor, b: Any, *, order: str = "fp32_fused", operands: str | tuple[str, str] | None = None
) -> Tensor: ...
@without_old_arguments
def matmul(a: Any, b: Any, *, order: str = "fp32_fused", operands: str | tuple[str, str] | None = None) -> Any:
    """The matrix product as a machine adds it up, bit for bit: each element equals `dot` of its row and column.

    a: (..., k), b: (k, n); or a: (..., m, k), b: (..., k, n), whose axes before the last two broadcast as NumPy's do.
        float32, float16 or bfloat16, in CPU memory. float32 matrices are read where they lie if one of their two axes
        is contiguous, as in transposed views and slices; others are copied first.
    order: one of `list_orders`, or such a name with another format or number, as "bf16_tensor_core(ampere)".
        A tensor core rounds a and b to its operands' format first. Or a block-scaled tensor core of Blackwell,
        "mxf8f6f4", "mxf4" or "mxf4nvf4", for a (..., k), b (k, n) and `operands` with blocks along k: it multiplies
        codes and scales, and the sums are multiplied by both tensor scales in FP32.
    operands: a format for both, or one for a and one for b, as `round` takes them: a and b are rounded to it before the
        product, with blocks along k; an array has one tensor scale. But for block-scaled tensor cores the product adds
        up the numbers that the codes stand for, scales included, in `order`.

    Returns (..., n), float32 of a's framework; of two arrays with more than two axes (..., m, n). Raises ValueError for
    shapes that do not fit, k of 2^31 or more, an unknown order, and tensors that need a gradient;
    TypeError as `round` does.
    """
    refuse_gradients("matmul", a, b)
    left, right = (operands, operands) if operands is None or isinstance(operands, str) else operands
    if order in _core.block_units():
        if left is None or right is None:
            raise ValueError(f"matmul: {order} multiplies blocks; give operands, as operands='mxfp4'")
        return _core.matmul_blocks(a, b, left, right, order)
    if left is not None and right is not None:
        a, b = round(a, left, axis=-1), round(b, right, axis=-2)
    return _core.matmul(a, b, order=order)


@overload
def sum(array: Any, axis: None = None, *, order: str = "fp32_sequential") -> float: ...
@overload
def sum(array: NDArray[Any], axis: int, *, order: str = "fp32_sequential") -> NDArray[np.float32]: ...
@overload
def sum(array: Tensor, axis: int, *, order: str = "fp32_sequential") -> Tensor: ...
@without_old_arguments
def sum(array: Any, axis: int | None = None, *, order: str = "fp32_sequential") -> Any:
    """The sum along an axis as a machine adds it up, bit for bit.

    array: any shape, float32, float16 or bfloat16, in CPU memory.
    axis: the one that is summed, from the front or, negative, from the back; None for all elements in row-major order.
    order: one of `list_orders` that adds up single terms, such as "fp16_sequential", "fp16_pairwise".

    Returns float32 of the array's framework without that axis; a float for None. Raises ValueError for an axis that the
    array does not have, an unknown order or one of products alone, and tensors that need a gradient; TypeError as
    `round` does.
    """
    refuse_gradients("sum", array)
    return _core.sum(array, None if axis is None else index(axis), order=order)


def refuse_gradients(function: str, *arrays: object) -> None:
    """Raises ValueError where PyTorch would record what happens to one of `arrays`."""
    if any(map(_needs_gradient, arrays)):
        raise ValueError(f"{function}: the tensor needs a gradient, and the result has none; give tensor.detach()")


@lru_cache(maxsize=256)
def note_look_alike(format: str) -> None:
    """Warns, once for a name, where another format has a name that looks alike: e4m3 beside fp8_e4m3."""
    note = _core.look_alike_note(format)
    if note:
        warnings.warn(note, stacklevel=3)


def _needs_gradient(array: object) -> bool:
    """Whether PyTorch would record what happens to `array`."""
    if not getattr(array, "requires_grad", False):
        return False
    torch = sys.modules.get("torch")
    return torch is None or torch.is_grad_enabled()
