"""Random ONNX graphs with planted faults of FP16: each block takes and makes a tensor of WIDTH columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 12


class Graph:
    """A graph that grows: each method adds nodes behind the last tensor, under random names."""

    def __init__(self, seed: int, opset: int = 20) -> None:
        self.draw, self.opset = np.random.default_rng(seed), opset
        self.nodes: list[Any] = []
        self.constants: dict[str, np.ndarray] = {}
        self.last = "x"

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, np.float32)
        return name

    def add(self, operation: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        output = f"t{len(self.nodes)}"
        label = name or f"/block{int(self.draw.integers(100))}.{len(self.nodes)}/{operation}"
        self.nodes.append(helper.make_node(operation, list(inputs), [output], name=label, **attributes))
        self.last = output
        return output

    def healthy(self, count: int) -> None:
        for _ in range(count):
            kind = self.draw.integers(6)
            if kind == 0:
                self.add("MatMul", self.last, self.constant(self.draw.normal(0, WIDTH**-0.5, (WIDTH, WIDTH))))
            elif kind == 1:
                before = self.last
                self.add("Add", self.add("Tanh", before), before)
            elif kind == 2:
                self.add("Softmax", self.add("Mul", self.last, self.constant(2.0)), axis=-1)
                self.add("Mul", self.last, self.constant(float(WIDTH)))
            elif kind == 3:
                self.add("Relu", self.last)
                self.add("Add", self.last, self.constant(self.draw.normal(size=WIDTH)))
            elif kind == 4:
                scale, bias = self.constant(np.ones(WIDTH)), self.constant(np.zeros(WIDTH))
                self.add("LayerNormalization", self.last, scale, bias, epsilon=1e-3) if self.opset >= 17 else self.add(
                    "Sigmoid", self.last
                )
            else:
                self.add("Transpose", self.add("Transpose", self.last, perm=[1, 0]), perm=[1, 0])

    def model(self, extra: Any = None) -> Any:
        self.add("Identity", self.last, name="/out")
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTH])
        y = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, ["N", WIDTH])
        held = [numpy_helper.from_array(value, name) for name, value in self.constants.items()]
        made = helper.make_model(
            helper.make_graph(self.nodes, "g", [x], [y], held), opset_imports=[helper.make_opsetid("", self.opset)]
        )
        made.ir_version = 9
        onnx.checker.check_model(made)
        return made


def mean_square(graph: Graph) -> list[str]:
    size = float(graph.draw.uniform(600, 3000))
    scaled = graph.add("Mul", graph.last, graph.constant(size))
    graph.add("Mul", scaled, scaled, name="/f/square")
    graph.add("Sqrt", graph.last, name="/f/root")
    graph.add("Div", graph.last, graph.constant(size))
    return ["/f/square", "/f/root"]


def exponential(graph: Graph) -> list[str]:
    graph.add("Clip", graph.last, graph.constant(-2.0), graph.constant(2.0))
    graph.add("Add", graph.last, graph.constant(float(graph.draw.uniform(11, 14))))
    graph.add("Exp", graph.last, name="/f/exp")
    graph.add("Log", graph.last, name="/f/log")
    return ["/f/exp", "/f/log"]


def small_epsilon(graph: Graph) -> list[str]:
    graph.add("Relu", graph.add("Sub", graph.last, graph.add("ReduceMean", graph.last, keepdims=1)))
    graph.add("Add", graph.last, graph.constant(10.0 ** -float(graph.draw.uniform(8.5, 12))), name="/f/eps")
    graph.add("Log", graph.last, name="/f/log")
    return ["/f/eps", "/f/log"]


def reciprocal_of_square(graph: Graph) -> list[str]:
    size = 10.0 ** -float(graph.draw.uniform(4.2, 5))
    least = graph.add("Add", graph.add("Abs", graph.last), graph.constant(0.5))
    scaled = graph.add("Mul", least, graph.constant(size), name="/f/scaled")
    graph.add("Mul", scaled, scaled, name="/f/square")
    graph.add("Div", graph.constant(size * size), graph.last, name="/f/div")
    return ["/f/scaled", "/f/square", "/f/div"]


def lost_difference(graph: Graph) -> list[str]:
    graph.add("Add", graph.last, "x")
    graph.add("Add", graph.last, graph.constant(float(graph.draw.uniform(3000, 9000))), name="/f/shift")
    shift = graph.nodes[-1].input[1]
    graph.add("Sub", graph.last, shift, name="/f/back")
    return ["/f/shift", "/f/back"]


def large_sum(graph: Graph) -> list[str]:
    size = float(graph.draw.uniform(2e4, 4e4))
    graph.add("Add", graph.add("Abs", graph.add("Tanh", graph.last)), graph.constant(0.5))
    graph.add("Mul", graph.last, graph.constant(size))
    graph.add("ReduceSum", graph.last, keepdims=1, name="/f/sum")
    total = graph.last
    graph.add("Div", total, graph.constant(size), name="/f/mean")
    graph.add("Add", graph.last, "x")
    return ["/f/sum", "/f/mean"]


FAULTS = [mean_square, exponential, small_epsilon, reciprocal_of_square, lost_difference, large_sum]


def inputs(seed: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).normal(size=(5, WIDTH)).astype(np.float32)}
