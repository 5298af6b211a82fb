"""The model and the inputs that `check` is given: files, or objects in memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx

_FREE_EXTENT = 2  # an axis without a size in random inputs


def loaded_model(model: Any) -> onnx.ModelProto:
    if isinstance(model, (str, os.PathLike)):
        path = Path(model)
        if not path.is_file():
            raise ValueError(f"onnx check: {path}: no such file")
        try:
            model = onnx.load(path)
        except Exception as error:
            raise ValueError(f"onnx check: {path}: no ONNX model: {line_of(error)}") from error
    if not isinstance(model, onnx.ModelProto):
        raise TypeError(f"onnx check: model is a {type(model).__name__}; give a path or an onnx.ModelProto")
    return model


def inputs_of(model: onnx.ModelProto, given: Any) -> tuple[dict[str, np.ndarray], str]:
    """Arrays by name, and words on them."""
    held = {tensor.name for tensor in model.graph.initializer}
    wanted = {value.name: value for value in model.graph.input if value.name not in held}
    if given is None:
        draw = np.random.default_rng(0)
        return {name: _random(value, draw) for name, value in wanted.items()}, "random inputs of the graph's shapes"
    if isinstance(given, (str, os.PathLike)):
        if not Path(given).is_file():
            raise ValueError(f"onnx check: {given}: no such file; give inputs as .npz")
        with np.load(given) as opened:
            given = {name: opened[name] for name in opened.files}
    lost = [name for name in wanted if name not in given]
    if lost:
        raise ValueError(f"onnx check: no input {lost[0]!r}; the graph has {', '.join(wanted)}")
    return {name: _fitting(name, given[name], value) for name, value in wanted.items()}, "the inputs given"


def _fitting(name: str, given: Any, value: onnx.ValueInfoProto) -> np.ndarray:
    """In the graph's type; its shape must be the graph's, where that has sizes."""
    kind = value.type.tensor_type
    array = np.asarray(given).astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type), copy=False)
    wanted = [extent.dim_value or extent.dim_param or "?" for extent in kind.shape.dim]
    fits = len(wanted) == array.ndim and all(
        size == extent or isinstance(size, str) for size, extent in zip(wanted, array.shape)
    )
    if kind.HasField("shape") and not fits:
        raise ValueError(f"onnx check: input {name!r} is {_shape(array.shape)}, and the graph takes {_shape(wanted)}")
    return array


def _shape(sizes: Any) -> str:
    return " x ".join(map(str, sizes)) or "a number"


def _random(value: onnx.ValueInfoProto, draw: np.random.Generator) -> np.ndarray:
    kind = value.type.tensor_type
    shape = [extent.dim_value or _FREE_EXTENT for extent in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    numbers = draw.normal(size=shape) if np.dtype(dtype).kind == "f" else draw.integers(0, 2, size=shape)
    return np.asarray(numbers).astype(dtype)


def line_of(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
