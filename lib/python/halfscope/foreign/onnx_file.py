"""Initializers of ONNX graphs, those of subgraphs too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any


def is_of(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() == ".onnx"


def read(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    import onnx
    from onnx.numpy_helper import to_array

    floats = {getattr(onnx.TensorProto, name): name for name in ("FLOAT", "FLOAT16", "BFLOAT16", "DOUBLE")}
    floats.update({getattr(onnx.TensorProto, name): name for name in ("FLOAT8E4M3FN", "FLOAT8E5M2")})
    tensors: dict[str, Any] = {}
    skipped: dict[str, str] = {}
    for tensor in _initializers(onnx.load(path).graph):
        name = tensor.name if tensor.name not in tensors else f"{tensor.name} ({len(tensors)})"  # two graphs share it
        if tensor.data_type in floats:
            tensors[name] = to_array(tensor)
        else:
            skipped[name] = f"type {onnx.TensorProto.DataType.Name(tensor.data_type)}"
    return tensors, skipped


def _initializers(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g, *attribute.graphs]:
                yield from _initializers(inner)
