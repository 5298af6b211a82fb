"""The model and the inputs that `check` is given: files, or objects in memory. A refusal is one line."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_model, uses_external_data
from onnx.inliner import inline_local_functions

from halfscope.onnx.mixed_model import subgraphs

_FREE_EXTENT = 2  # an axis without a size in random inputs
_MOST_BYTES = 2**31 - 1  # protobuf's limit, for one message


def loaded_model(model: Any) -> tuple[onnx.ModelProto, bool]:
    """The model with its external data; and whether functions of its own were inlined, whose nodes are the graph's.

    Raises ValueError for what is no whole model, TypeError for another type.
    """
    whole = _whole_model(model)
    return (inline_local_functions(whole), True) if whole.functions else (whole, False)


def _whole_model(model: Any) -> onnx.ModelProto:
    if isinstance(model, (str, os.PathLike)):
        return _of_file(Path(model))
    if not isinstance(model, onnx.ModelProto):
        raise TypeError(f"onnx check: model is a {type(model).__name__}; give a path or an onnx.ModelProto")
    for tensor in _external(model.graph):
        where = ExternalDataInfo(tensor).location
        raise ValueError(f"onnx check: tensor {tensor.name!r} lies in {where}; give the path of the model's file")
    return _small(model)


def _of_file(path: Path) -> onnx.ModelProto:
    if path.is_dir():
        raise ValueError(f"onnx check: {path} is a folder; give the file of a model in it")
    if not path.is_file():
        raise ValueError(f"onnx check: {path}: no such file")
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:
        raise ValueError(f"onnx check: {path}: no ONNX model, or a part of one: {line_of(error)}") from error
    if not model.graph.node:
        raise ValueError(f"onnx check: {path}: its graph has no node; the file is empty or no ONNX model")
    for tensor in _external(model.graph):
        _look_for(path, tensor)
    try:
        load_external_data_for_model(model, str(path.parent))
    except Exception as error:
        raise ValueError(f"onnx check: {path}: its external data: {line_of(error)}") from error
    return _small(model)


def _external(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Initializers that lie in another file, those of subgraphs too."""
    yield from (tensor for tensor in graph.initializer if uses_external_data(tensor))
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _external(inner)


def _look_for(path: Path, tensor: onnx.TensorProto) -> None:
    about = ExternalDataInfo(tensor)
    where = path.parent / about.location
    if not where.is_file():
        raise ValueError(f"onnx check: {path}: tensor {tensor.name!r} lies in {where}, which is not there")
    end, size = (about.offset or 0) + (about.length or 0), where.stat().st_size
    if end > size:
        raise ValueError(
            f"onnx check: {path}: tensor {tensor.name!r} ends at byte {end} of {where}, which is truncated to {size}"
        )


def _small(model: onnx.ModelProto) -> onnx.ModelProto:
    size = model.ByteSize()
    if size > _MOST_BYTES:
        raise ValueError(
            f"onnx check: the model has {size / 1e9:.3g} GB, and a graph in memory {_MOST_BYTES / 1e9:.3g} at most; "
            "give a part of it: onnx.utils.extract_model"
        )
    return model


def inputs_of(model: onnx.ModelProto, given: Any) -> tuple[dict[str, np.ndarray], str]:
    """Arrays by name, and words on them. Raises ValueError and TypeError for those that do not fit the graph."""
    held = {tensor.name for tensor in model.graph.initializer}  # these have a value, and may be given another
    taken = {value.name: value for value in model.graph.input}
    wanted = {name: value for name, value in taken.items() if name not in held}
    if given is None:
        draw = np.random.default_rng(0)
        return {name: _random(value, draw) for name, value in wanted.items()}, "random inputs of the graph's shapes"
    if isinstance(given, (str, os.PathLike)):
        given = _arrays_of(Path(given))
    if not isinstance(given, Mapping):
        raise TypeError(f"onnx check: inputs is a {type(given).__name__}; give arrays by name, or the path of a .npz")
    for name in wanted:
        if name not in given:
            raise ValueError(f"onnx check: no input {name!r}; the graph has {', '.join(wanted)}")
    for name in given:
        if name not in taken:
            raise ValueError(f"onnx check: the graph has no input {name!r}; it has {', '.join(wanted)}")
    sizes: dict[str, tuple[str, int]] = {}
    arrays = {name: _fitting(name, given[name], taken[name], sizes) for name in taken if name in given}
    return arrays, "the inputs given"


def _arrays_of(path: Path) -> dict[str, np.ndarray]:
    if not path.is_file():
        raise ValueError(f"onnx check: {path}: no such file; give inputs as .npz")
    if not zipfile.is_zipfile(path):
        raise ValueError(f"onnx check: {path}: no .npz, or a part of one; np.savez writes arrays by name")
    try:
        with np.load(path) as opened:
            return {name: opened[name] for name in opened.files}
    except Exception as error:  # from the archive, its compression, or an array
        raise ValueError(f"onnx check: {path}: no .npz of arrays: {line_of(error)}") from error


def _fitting(name: str, given: Any, value: onnx.ValueInfoProto, sizes: dict[str, tuple[str, int]]) -> np.ndarray:
    """In the graph's type and shape. sizes: of the axes that the graph names, by an input that has them."""
    kind = value.type.tensor_type
    array = _typed(name, np.asarray(given), np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)))
    wanted = [extent.dim_value or extent.dim_param or "?" for extent in kind.shape.dim]
    fits = len(wanted) == array.ndim and all(
        size == extent or isinstance(size, str) for size, extent in zip(wanted, array.shape)
    )
    if kind.HasField("shape") and not fits:
        raise ValueError(f"onnx check: input {name!r} is {_shape(array.shape)}, and the graph takes {_shape(wanted)}")
    for axis, size in zip(wanted if kind.HasField("shape") else (), array.shape):
        if isinstance(axis, str) and axis != "?" and sizes.setdefault(axis, (name, size))[1] != size:
            other, known = sizes[axis]
            raise ValueError(f"onnx check: inputs {other!r} and {name!r} differ in {axis}, which is {known} and {size}")
    return array


def _typed(name: str, array: np.ndarray, wanted: np.dtype) -> np.ndarray:
    """The same numbers in the type; floats are rounded to a float type."""
    is_number = array.dtype.kind in "biuf" or (array.dtype.kind == "V" and array.dtype.fields is None)
    if wanted.kind not in "biuf" or array.dtype == wanted:
        return array.astype(wanted, copy=False)
    if not is_number:
        raise ValueError(f"onnx check: input {name!r} is {array.dtype}, and the graph takes {wanted}")
    with np.errstate(all="ignore"):
        typed = array.astype(wanted)
    if wanted.kind != "f" and not (typed == array).all():
        lost = array[typed != array].flat[0]
        raise ValueError(
            f"onnx check: input {name!r} is {array.dtype}, and the graph takes {wanted}; {lost} is no {wanted}"
        )
    return typed


def _shape(sizes: Any) -> str:
    return " x ".join(map(str, sizes)) or "a number"


def _random(value: onnx.ValueInfoProto, draw: np.random.Generator) -> np.ndarray:
    kind = value.type.tensor_type
    shape = [extent.dim_value or _FREE_EXTENT for extent in kind.shape.dim]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    numbers = draw.normal(size=shape) if np.dtype(dtype).kind == "f" else draw.integers(0, 2, size=shape)
    return np.asarray(numbers).astype(dtype)


def line_of(error: Exception) -> str:
    """An error in one line, cut after 200 signs."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
