"""An ONNX model in 16 bits with some nodes in FP32: each float tensor in the type that its users take."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_HALF = "@16"  # ends the name of a tensor in 16 bits
_NUMPY_TYPES = {TensorProto.FLOAT16: np.float16}
_TYPED = ("dtype", "to")  # attributes that name the type of a result


def mixed_model(model: onnx.ModelProto, floats: set[str], keep: frozenset[int], type_: int) -> onnx.ModelProto:
    """A copy of an FP32 model whose nodes compute in `type_`, but for `keep`; inputs and outputs stay FP32.

    floats: names of its FP32 tensors. keep: nodes by their number, a node before those of its subgraphs. A node that
    has no such type in ONNX for an operand or a result takes and makes FP32 there.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    versions = {each.domain: each.version for each in model.opset_import}
    _Mixed(floats, keep, type_, versions).rewrite(copy.graph)
    return copy


class _Mixed:
    """Each float tensor has its name in FP32, and a second name in 16 bits."""

    def __init__(self, floats: set[str], keep: frozenset[int], type_: int, versions: dict[str, int]) -> None:
        self._floats, self._keep, self._type, self._versions = floats, keep, type_, versions
        self._numbers = count()

    def rewrite(self, graph: onnx.GraphProto) -> None:
        held = {each.name for each in graph.initializer}
        given = [each.name for each in graph.input if each.name in self._floats and each.name not in held]
        before = [self._narrow(name) for name in [*given, *(each for each in held if each in self._floats)]]
        made = [*before, *(part for node in graph.node for part in self._rewritten(node))]
        used = _used_names([*made], graph)
        del graph.node[:]
        del graph.value_info[:]
        graph.node.extend(node for node in made if not _is_own_cast(node) or node.output[0] in used)
        self._store_constants(graph)

    def _narrow(self, name: str) -> onnx.NodeProto:
        return helper.make_node("Cast", [name], [name + _HALF], to=self._type, name=f"{name}{_HALF}/narrow")

    def _rewritten(self, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
        is_kept, inner = next(self._numbers) in self._keep, subgraphs(node)
        for graph in inner:
            self.rewrite(graph)
        is_wide = is_kept or bool(inner) or node.op_type == "Constant" or _names_fp32(node)
        takes, makes = ((), ()) if is_wide else self._half_places(node)
        for place in takes:
            if place < len(node.input) and node.input[place] in self._floats:
                node.input[place] += _HALF
        results = [(place, name) for place, name in enumerate(node.output) if name in self._floats]
        for place, _ in results:
            if place in makes:
                node.output[place] += _HALF
        yield node
        for place, name in results:
            if place in makes:
                yield helper.make_node(
                    "Cast", [name + _HALF], [name], to=TensorProto.FLOAT, name=f"{name}{_HALF}/widen"
                )
            else:
                yield self._narrow(name)

    def _half_places(self, node: onnx.NodeProto) -> tuple[set[int], set[int]]:
        """Operands and results that may have the type; a node of an unknown operation has none."""
        try:
            schema = onnx.defs.get_schema(node.op_type, self._versions.get(node.domain, 1), node.domain)
        except Exception:
            return set(), set()
        allowed = {each.type_param_str: set(each.allowed_type_strs) for each in schema.type_constraints}
        word = "tensor(float16)" if self._type == TensorProto.FLOAT16 else "tensor(bfloat16)"

        def places(formals: Any, number: int) -> set[int]:
            kinds = [each.type_str for each in formals]
            kinds += kinds[-1:] * max(0, number - len(kinds))  # variadic
            return {place for place, kind in enumerate(kinds) if word in allowed.get(kind, {kind})}

        return places(schema.inputs, len(node.input)), places(schema.outputs, len(node.output))

    def _store_constants(self, graph: onnx.GraphProto) -> None:
        """Initializers whose cast alone is used are held in 16 bits; NumPy has no bfloat16, which stays a cast."""
        numpy_type = _NUMPY_TYPES.get(self._type)
        if numpy_type is None:
            return
        held = {each.name: each for each in graph.initializer}
        casts = {node.input[0]: node for node in graph.node if _is_own_cast(node) and node.input[0] in held}
        others = _used_names(
            [node for node in graph.node if not (_is_own_cast(node) and node.input[0] in casts)], graph
        )
        for name, cast in casts.items():
            with np.errstate(over="ignore"):
                narrow = numpy_helper.to_array(held[name]).astype(numpy_type)
            graph.initializer.append(numpy_helper.from_array(narrow, cast.output[0]))
            graph.node.remove(cast)
            if name not in others:
                graph.initializer.remove(held[name])


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Graphs among a node's attributes, in their order: branches of an If, the body of a Loop or Scan."""
    found: list[onnx.GraphProto] = []
    for attribute in node.attribute:
        found += [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
    return found


def every_graph(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """The graph, and all that stand in its nodes."""
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from every_graph(inner)


def _names_fp32(node: onnx.NodeProto) -> bool:
    return any(each.name in _TYPED and each.i == TensorProto.FLOAT for each in node.attribute) or (
        node.op_type == "ConstantOfShape"
    )


def _is_own_cast(node: onnx.NodeProto) -> bool:
    return node.op_type == "Cast" and node.name.endswith((f"{_HALF}/narrow", f"{_HALF}/widen"))


def _used_names(nodes: list[onnx.NodeProto], graph: onnx.GraphProto) -> set[str]:
    """Names that nodes take, those of subgraphs too, and the graph's outputs."""
    used = {each.name for each in graph.output}
    for node in nodes:
        used.update(node.input)
        for inner in subgraphs(node):
            used |= _used_names(list(inner.node), inner)
    return used
