"""Nodes of an ONNX model, subgraphs included, and copies of the model that round each result or add noise to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from halfscope.onnx.mixed_model import mixed_model, subgraphs

_ROUNDED = "@16"  # ends the name of a tensor in 16 bits
_RAW = "@32"  # ends the name of a result before its rounding
_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_TRACE = "pkg.torch.onnx.stack_trace"
_CONSTANTS = ("Constant", "ConstantOfShape")
TYPES = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


@dataclass(frozen=True)
class GraphNode:
    """A node by its number in the model. place: file and line of the source, if the exporter tells."""

    number: int
    name: str  # as converters' lists have it; empty of a node without one
    operation: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    is_inside: bool  # a subgraph's
    place: tuple[str, int] | None

    def __str__(self) -> str:
        return f"{self.name or self.outputs[0]} ({self.operation})"


@dataclass
class Graphs:
    """A model whose float tensors are FP32, with what copies of it need."""

    model: onnx.ModelProto
    nodes: list[GraphNode] = field(init=False)
    constants: dict[str, np.ndarray] = field(init=False)  # float ones, initializers and Constant nodes
    _ranks: dict[str, int] = field(init=False)  # float tensors' ranks; 0: not known

    def __post_init__(self) -> None:
        self.nodes = [_node(number, node, inside) for number, (node, inside) in enumerate(_walk(self.model.graph))]
        self.constants = {name: value for graph in _graphs(self.model.graph) for name, value in _constants(graph)}
        self._ranks = _float_ranks(self.model)
        if not self._ranks:
            raise ValueError("onnx check: the model has no FP32 tensor; give the model before its conversion")

    def rounded(self, format: str, keep: frozenset[int]) -> onnx.ModelProto:
        """Each float result is rounded to the format; nodes of `keep` are FP32, with constants as they are."""
        return self._copy(_Rounding(TYPES[format], keep))

    def noisy(self, unit: float, seed: int) -> onnx.ModelProto:
        """Each float result has noise of at most `unit`, relative, as a rounding has."""
        return self._copy(_Noise(unit, seed, self._ranks))

    def mixed(self, format: str, keep: frozenset[int]) -> onnx.ModelProto:
        """The model in the format, with the nodes of `keep` in FP32."""
        return mixed_model(self.model, set(self._ranks), keep, TYPES[format])

    def _copy(self, change: Any) -> onnx.ModelProto:
        copy = onnx.ModelProto()
        copy.CopyFrom(self.model)
        _Copy(change, set(self._ranks), set(self.constants)).rewrite(copy.graph, True)
        return copy


class _Rounding:
    def __init__(self, type_: int, keep: frozenset[int]) -> None:
        self._type, self.keep = type_, keep

    def nodes(self, source: str, target: str) -> list[onnx.NodeProto]:
        """Nodes that make `target` of `source`."""
        middle = f"{target}@cast"
        return [
            helper.make_node("Cast", [source], [middle], to=self._type),
            helper.make_node("Cast", [middle], [target], to=TensorProto.FLOAT),
        ]


class _Noise:
    keep: frozenset[int] = frozenset()

    def __init__(self, unit: float, seed: int, ranks: dict[str, int]) -> None:
        self._unit, self._ranks, self._draw = unit, ranks, np.random.default_rng(seed)

    def nodes(self, source: str, target: str) -> list[onnx.NodeProto]:
        """A factor for each element; a number, and a tensor of unknown rank, have one."""
        factor, name = f"{target}@factor", target.removesuffix(_ROUNDED)
        if self._ranks.get(name, 0):
            limits = {"low": 1 - self._unit, "high": 1 + self._unit, "seed": float(self._draw.integers(1 << 20))}
            made = helper.make_node("RandomUniformLike", [source], [factor], dtype=TensorProto.FLOAT, **limits)
        else:
            number = np.float32(1 + self._unit * self._draw.uniform(-1, 1))
            made = helper.make_node("Constant", [], [factor], value=numpy_helper.from_array(np.asarray(number)))
        return [made, helper.make_node("Mul", [source, factor], [target])]


class _Copy:
    """One pass over a copied graph, in the order of the nodes' numbers."""

    def __init__(self, change: Any, floats: set[str], constants: set[str]) -> None:
        self._change, self._floats, self._constants = change, floats, constants
        self._numbers = count()
        self._given: set[str] = set()  # the model's inputs, which are in 16 bits for every node

    def rewrite(self, graph: onnx.GraphProto, is_outer: bool) -> None:
        before: list[onnx.NodeProto] = []
        own = {each.name for each in graph.initializer}
        for name in (each.name for each in graph.initializer):
            if name in self._constants:
                before += self._change.nodes(name, name + _ROUNDED)
        given = [each.name for each in graph.input if each.name in self._floats and each.name not in own]
        for name in given:
            before += self._change.nodes(name, name + _ROUNDED)
        if is_outer:
            self._given = set(given)
        changed = [made for node in graph.node for made in self._rewritten(node)]
        del graph.node[:]
        graph.node.extend([*before, *changed])

    def _rewritten(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        kept = next(self._numbers) in self._change.keep
        for graph in subgraphs(node):
            self.rewrite(graph, False)
        for place, name in enumerate(node.input):
            if name in self._given or (not kept and name in self._floats):
                node.input[place] = name + _ROUNDED
        results = [(place, name) for place, name in enumerate(node.output) if name in self._floats]
        is_constant = node.op_type in _CONSTANTS
        for place, name in results:
            if not kept and not is_constant:
                node.output[place] = name + _RAW
        yield node
        for _, name in results:
            if is_constant or kept:
                yield from self._change.nodes(name, name + _ROUNDED)
            else:  # subgraphs and outputs read `name`, which is rounded
                yield from self._change.nodes(name + _RAW, name)
                yield helper.make_node("Identity", [name], [name + _ROUNDED])


def _walk(graph: onnx.GraphProto, is_inside: bool = False) -> Iterator[tuple[onnx.NodeProto, bool]]:
    """Nodes in the order in which a copy numbers them: a node before those of its subgraphs."""
    for node in graph.node:
        yield node, is_inside
        for inner in subgraphs(node):
            yield from _walk(inner, True)


def _node(number: int, node: onnx.NodeProto, is_inside: bool) -> GraphNode:
    trace = next((each.value for each in node.metadata_props if each.key == _TRACE), "")
    lines = _LINE.findall(trace)
    place = (lines[-1][0], int(lines[-1][1])) if lines else None
    return GraphNode(number, node.name, node.op_type, tuple(node.output), tuple(node.input), is_inside, place)


def _constants(graph: onnx.GraphProto) -> Iterator[tuple[str, np.ndarray]]:
    """The float constants of one graph."""
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            yield tensor.name, numpy_helper.to_array(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value" and attribute.t.data_type == TensorProto.FLOAT:
                yield node.output[0], numpy_helper.to_array(attribute.t)
            elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
                numbers = attribute.floats if attribute.name == "value_floats" else attribute.f
                yield node.output[0], np.asarray(numbers, np.float32)


def _float_ranks(model: onnx.ModelProto) -> dict[str, int]:
    """Ranks of FP32 tensors by name, by ONNX's own inference; 0 where it knows none."""
    inferred = onnx.shape_inference.infer_shapes(model)
    return {name: rank for graph in _graphs(inferred.graph) for name, rank in _floats_of(graph)}


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)


def _floats_of(graph: onnx.GraphProto) -> Iterator[tuple[str, int]]:
    for value in [*graph.input, *graph.output, *graph.value_info]:
        kind = value.type.tensor_type
        if kind.elem_type == TensorProto.FLOAT:
            yield value.name, len(kind.shape.dim) if kind.HasField("shape") else 0
    yield from ((each.name, len(each.dims)) for each in graph.initializer if each.data_type == TensorProto.FLOAT)
