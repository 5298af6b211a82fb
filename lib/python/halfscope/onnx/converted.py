"""A file that was converted to 16 bits, in part or whole: the same graph in FP32, and where the file has 16 bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from halfscope.onnx.mixed_model import every_graph, subgraphs

TYPES = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
_TYPED = ("dtype", "to", "output_dtype")  # attributes that name the type of a result
_WRITTEN = "halfscope.format"  # key in the metadata of a model in 16 bits, which may keep all of its nodes
ROUNDED = "@16"  # ends the name of a tensor in 16 bits
RAW = "@32"  # ends the name of a result before its rounding


@dataclass(frozen=True)
class Converted:
    """A converted model.

    model: the same graph in FP32, with the file's constants. wide: nodes, by their number, without a result in 16
    bits; a node has its number before those of its subgraphs. inputs: the graph's inputs in 16 bits.
    """

    model: onnx.ModelProto
    wide: frozenset[int]
    inputs: frozenset[str]


def unconverted(model: onnx.ModelProto, format: str) -> Converted | None:
    """None of a model without a tensor in 16 bits. Raises ValueError where one has another such type than `format`."""
    kinds = _types_of(onnx.shape_inference.infer_shapes(model).graph)
    for name, type_ in TYPES.items():
        if name != format and type_ in kinds.values():
            both, words = TYPES[format] in kinds.values(), f"onnx check: the file has tensors in {name.upper()}"
            raise ValueError(
                f"{words} and in {format.upper()}; give one with one of them"
                if both
                else f'{words}; give format="{name}"'
            )
    halves = {name for name, type_ in kinds.items() if type_ == TYPES[format]}
    if not halves and not any(each.key == _WRITTEN and each.value == format for each in model.metadata_props):
        return None
    wide = frozenset(number for number, node in enumerate(_nodes(model.graph)) if not halves.intersection(node.output))
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _Widening(TYPES[format], _free_names(model)).rewrite(copy.graph)
    return Converted(copy, wide, frozenset(each.name for each in model.graph.input if each.name in halves))


class _Widening:
    """Types and names of a copied graph. names: new ones of tensors, by their old ones."""

    def __init__(self, type_: int, names: dict[str, str]) -> None:
        self._type, self._names = type_, names

    def rewrite(self, graph: onnx.GraphProto) -> None:
        del graph.value_info[:]
        for value in [*graph.input, *graph.output]:
            self._widen_type(value.type)
            value.name = self._renamed(value.name)
        for tensor in graph.initializer:
            self._widen(tensor)
            tensor.name = self._renamed(tensor.name)
        for node in graph.node:
            node.input[:] = map(self._renamed, node.input)
            node.output[:] = map(self._renamed, node.output)
            for attribute in node.attribute:
                if attribute.name in _TYPED and attribute.i == self._type:
                    attribute.i = TensorProto.FLOAT
                for tensor in [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]:
                    self._widen(tensor)
            for inner in subgraphs(node):
                self.rewrite(inner)

    def _renamed(self, name: str) -> str:
        return self._names.get(name, name)

    def _widen(self, tensor: onnx.TensorProto) -> None:
        if tensor.data_type == self._type:
            values = np.asarray(numpy_helper.to_array(tensor)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))

    def _widen_type(self, type_: Any) -> None:
        """The type of a tensor, or of a sequence's or an optional's elements."""
        kind = type_.WhichOneof("value")
        if kind == "tensor_type" and type_.tensor_type.elem_type == self._type:
            type_.tensor_type.elem_type = TensorProto.FLOAT
        elif kind in ("sequence_type", "optional_type"):
            self._widen_type(getattr(type_, kind).elem_type)


def mark(model: onnx.ModelProto, format: str) -> onnx.ModelProto:
    """The model, which says that it was converted."""
    onnx.helper.set_model_props(model, {**{each.key: each.value for each in model.metadata_props}, _WRITTEN: format})
    return model


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for inner in subgraphs(node):
            yield from _nodes(inner)


def _types_of(graph: onnx.GraphProto) -> dict[str, int]:
    """Types of tensors by their names, subgraphs' too."""
    types: dict[str, int] = {}
    for each in every_graph(graph):
        for value in [*each.input, *each.output, *each.value_info]:
            types[value.name] = value.type.tensor_type.elem_type
        types.update({tensor.name: tensor.data_type for tensor in each.initializer})
    return types


def _free_names(model: onnx.ModelProto) -> dict[str, str]:
    """New names of tensors whose names end as those that copies add; the model's inputs and outputs keep theirs."""
    outer = {each.name for each in [*model.graph.input, *model.graph.output]}
    taken = {name for node in _nodes(model.graph) for name in [*node.input, *node.output]} | outer
    taken |= {each.name for graph in every_graph(model.graph) for each in [*graph.initializer, *graph.input]}
    names: dict[str, str] = {}
    for name in sorted(taken):
        if name.endswith((ROUNDED, RAW)) and name not in outer:
            new = name.replace("@", "_")
            while new in taken:
                new += "_"
            taken.add(new)
            names[name] = new
    return names
