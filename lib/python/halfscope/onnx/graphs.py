"""Nodes of an ONNX model, subgraphs included, and copies of the model that round each result or add noise to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from halfscope.onnx.converted import RAW, ROUNDED, TYPES, Converted, mark
from halfscope.onnx.evaluator import DOMAIN, Noise, Rounding
from halfscope.onnx.mixed_model import every_graph, mixed_model, subgraphs

_LINE = re.compile(r'File "([^"]+)", line (\d+)')
_TRACE = "pkg.torch.onnx.stack_trace"
_CONSTANTS = ("Constant", "ConstantOfShape")


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
    """A model whose float tensors are FP32, with what copies of it need.

    converted: the file that it is of, where that has 16 bits. Copies then have 16 bits where the file has them.
    """

    model: onnx.ModelProto
    converted: Converted | None = None
    nodes: list[GraphNode] = field(init=False)
    constants: dict[str, np.ndarray] = field(init=False)  # float ones, initializers and Constant nodes
    _floats: set[str] = field(init=False)  # names of float tensors

    def __post_init__(self) -> None:
        self.nodes = [_node(number, node, inside) for number, (node, inside) in enumerate(_walk(self.model.graph))]
        self.constants = {name: value for graph in every_graph(self.model.graph) for name, value in _constants(graph)}
        self._floats = _float_names(self.model)
        if not self._floats:
            raise ValueError(
                "onnx check: the model has no tensor in FP32 or 16 bits; give the model before its conversion"
            )

    @property
    def wide(self) -> frozenset[int]:
        """Nodes that the file has in FP32 already, by their number."""
        return frozenset() if self.converted is None else self.converted.wide

    def names_in_fp32(self) -> list[str]:
        """Names of those nodes but casts and constants, for a converter's list."""
        own = [node for node in self.nodes if node.number in self.wide and node.operation not in ("Cast", *_CONSTANTS)]
        return [node.name for node in own if node.name and self._floats.intersection(node.outputs)]

    def rounded(self, format: str, keep: frozenset[int]) -> onnx.ModelProto:
        """Each float result is rounded to the format; nodes of `keep` are FP32, with constants as they are."""
        return self._copy(_Change(Rounding, keep | self.wide, format=format))

    def noisy(self, format: str, unit: float, seed: int) -> onnx.ModelProto:
        """Each float result that the format does not hold has noise of at most `unit`, relative, as a rounding has."""
        return self._copy(_Change(Noise, self.wide, seed, format=format, unit=unit))

    def mixed(self, format: str, keep: frozenset[int]) -> onnx.ModelProto:
        """The model in the format, with the nodes of `keep` in FP32."""
        return mark(mixed_model(self.model, self._floats, keep | self.wide, TYPES[format]), format)

    def _copy(self, change: Any) -> onnx.ModelProto:
        copy = onnx.ModelProto()
        copy.CopyFrom(self.model)
        copy.opset_import.append(helper.make_opsetid(DOMAIN, 1))
        inputs = self._floats if self.converted is None else self.converted.inputs
        _Copy(change, self._floats, set(self.constants), inputs).rewrite(copy.graph, True)
        return copy


class _Change:
    """A node of our own behind each float tensor, but for results of the nodes in `keep`."""

    def __init__(self, operation: type, keep: frozenset[int] = frozenset(), seed: int | None = None, **options: Any):
        self._operation, self.keep, self._options = operation.__name__, keep, options
        self._draw = None if seed is None else np.random.default_rng(seed)

    def node(self, source: str, target: str) -> onnx.NodeProto:
        """The node that makes `target` of `source`."""
        seed = {} if self._draw is None else {"seed": int(self._draw.integers(1 << 20))}
        return helper.make_node(self._operation, [source], [target], domain=DOMAIN, **self._options, **seed)


class _Copy:
    """One pass over a copied graph, in the order of the nodes' numbers."""

    def __init__(self, change: Any, floats: set[str], constants: set[str], narrow: Set[str]) -> None:
        self._change, self._floats, self._constants, self._narrow = change, floats, constants, narrow
        self._numbers = count()
        self._given: set[str] = set()  # the model's inputs that are in 16 bits for every node

    def rewrite(self, graph: onnx.GraphProto, is_outer: bool) -> None:
        before: list[onnx.NodeProto] = []
        own = {each.name for each in graph.initializer}
        for name in (each.name for each in graph.initializer):
            if name in self._constants:
                before.append(self._change.node(name, name + ROUNDED))
        given = [each.name for each in graph.input if each.name in self._floats and each.name not in own]
        for name in given:
            before.append(self._change.node(name, name + ROUNDED))
        if is_outer:
            self._given = {name for name in given if name in self._narrow}
        changed = [made for node in graph.node for made in self._rewritten(node)]
        del graph.node[:]
        graph.node.extend([*before, *changed])

    def _rewritten(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        kept = next(self._numbers) in self._change.keep
        for graph in subgraphs(node):
            self.rewrite(graph, False)
        for place, name in enumerate(node.input):
            if name in self._given or (not kept and name in self._floats):
                node.input[place] = name + ROUNDED
        results = [(place, name) for place, name in enumerate(node.output) if name in self._floats]
        is_constant = node.op_type in _CONSTANTS
        for place, name in results:
            if not kept and not is_constant:
                node.output[place] = name + RAW
        yield node
        for _, name in results:
            if is_constant or kept:
                yield self._change.node(name, name + ROUNDED)
            else:  # subgraphs and outputs read `name`, which is rounded
                yield self._change.node(name + RAW, name)
                yield helper.make_node("Identity", [name], [name + ROUNDED])


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


def _float_names(model: onnx.ModelProto) -> set[str]:
    """Names of FP32 tensors, by ONNX's own inference."""
    inferred = onnx.shape_inference.infer_shapes(model)
    return {name for graph in every_graph(inferred.graph) for name in _floats_of(graph)}


def _floats_of(graph: onnx.GraphProto) -> Iterator[str]:
    for value in [*graph.input, *graph.output, *graph.value_info]:
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            yield value.name
    yield from (each.name for each in graph.initializer if each.data_type == TensorProto.FLOAT)
