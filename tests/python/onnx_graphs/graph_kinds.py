"""Kinds of networks as blocks of a random ONNX graph, healthy in FP16, and faults that only some of them can have."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from grown_graphs import WIDTH, Graph


def whole(graph: Graph, values: np.ndarray | list[int], type_: type = np.int64) -> str:
    """An initializer of whole numbers."""
    name = graph.constant(0.0)
    graph.constants[name] = np.asarray(values, type_)
    return name


def matrix(graph: Graph, rows: int = WIDTH, columns: int = WIDTH) -> str:
    return graph.constant(graph.draw.normal(0, rows**-0.5, (rows, columns)))


def mean(graph: Graph, values: str, name: str = "") -> str:
    """Over the last axis: an attribute before opset 18, an operand from there on."""
    if graph.opset < 18:
        return graph.add("ReduceMean", values, name=name, axes=[-1])
    return graph.add("ReduceMean", values, whole(graph, [-1]), name=name)


def rms_norm(graph: Graph, names: tuple[str, ...] = ("", "", "", "")) -> None:
    """T5's: x / sqrt(mean(x^2) + 1e-6), with Pow of a constant exponent as exporters write it."""
    x = graph.last
    square = graph.add("Pow", x, graph.constant(2.0), name=names[0])
    shifted = graph.add("Add", mean(graph, square, names[1]), graph.constant(1e-6), name=names[2])
    graph.add("Div", x, graph.add("Sqrt", shifted, name=names[3]))
    graph.add("Mul", graph.last, graph.constant(graph.draw.uniform(0.5, 1.5, WIDTH)))


def attention(graph: Graph, lowest: float = -1e4) -> None:
    """Rows attend to rows: scores, a bias of relative positions, a mask times a number, softmax; residual."""
    x = graph.last
    rms_norm(graph)
    normed = graph.last
    query, key, value = (graph.add("MatMul", normed, matrix(graph)) for _ in range(3))
    scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=[1, 0]))
    scores = graph.add("Mul", scores, graph.constant(WIDTH**-0.5))
    row = graph.add("Slice", graph.add("Abs", x), whole(graph, [0]), whole(graph, [1]), whole(graph, [1]))
    hidden = graph.add("Cast", graph.add("Less", row, graph.constant(0.0)), to=TensorProto.FLOAT)  # none is hidden
    graph.add("Mul", hidden, graph.constant(lowest), name="/f/mask")
    scores = graph.add("Add", scores, graph.last, name="/f/add")
    graph.add("MatMul", graph.add("Softmax", scores, axis=-1), value)
    graph.add("Add", graph.add("MatMul", graph.last, matrix(graph)), x)


def feed_forward(graph: Graph, name: str = "", size: float = 1.0, residual: bool = True) -> None:
    """T5's gated layer: gelu by Erf, times a second product; `size` is a factor of the last weights."""
    x = graph.last
    if residual:
        rms_norm(graph)
    normed = graph.last
    gate = graph.add("MatMul", normed, matrix(graph, WIDTH, 24))
    erf = graph.add("Erf", graph.add("Div", gate, graph.constant(2**0.5)))
    gate = graph.add("Mul", graph.add("Mul", gate, graph.add("Add", erf, graph.constant(1.0))), graph.constant(0.5))
    graph.add("Mul", gate, graph.add("MatMul", normed, matrix(graph, WIDTH, 24)))
    weights = graph.constant(size * graph.draw.normal(0, 24**-0.5, (24, WIDTH)))
    graph.add("MatMul", graph.last, weights, name=name)
    if residual:
        graph.add("Add", graph.last, x)


def transformer(graph: Graph) -> None:
    attention(graph)
    feed_forward(graph)


def convolutions(graph: Graph) -> None:
    """A convolution, a batch norm, ReLU, Resize to twice the size, a pool back."""
    draw = graph.draw
    graph.add("Reshape", graph.last, whole(graph, [-1, 3, 2, 2]))
    weights = graph.constant(draw.normal(0, 0.3, (3, 3, 3, 3)))
    graph.add("Conv", graph.last, weights, graph.constant(draw.normal(size=3)), pads=[1, 1, 1, 1])
    statistics = [draw.uniform(0.5, 1.5, 3), draw.normal(size=3), draw.normal(size=3), draw.uniform(0.5, 2, 3)]
    graph.add("BatchNormalization", graph.last, *map(graph.constant, statistics))
    mode = ["nearest", "linear"][int(draw.integers(2))]
    asked = {"coordinate_transformation_mode": "asymmetric" if mode == "nearest" else "half_pixel", "mode": mode}
    graph.add("Resize", graph.add("Relu", graph.last), "", graph.constant([1.0, 1.0, 2.0, 2.0]), **asked)
    pool = ["MaxPool", "AveragePool"][int(draw.integers(2))]
    graph.add(pool, graph.last, kernel_shape=[2, 2], strides=[2, 2])
    graph.add("Reshape", graph.last, whole(graph, [-1, WIDTH]))


def quantized(graph: Graph) -> None:
    """A product in INT8 as quantizers write it: Q and DQ before it, weights behind a DQ, a scale for each column."""
    scale, zero = graph.constant(0.05), whole(graph, np.asarray(128), np.uint8)
    graph.add("DequantizeLinear", graph.add("QuantizeLinear", graph.last, scale, zero), scale, zero)
    codes = whole(graph, graph.draw.integers(-120, 120, (WIDTH, WIDTH)), np.int8)
    scales = graph.constant(graph.draw.uniform(0.002, 0.004, WIDTH))
    before = graph.last
    weights = graph.add("DequantizeLinear", codes, scales, whole(graph, np.zeros(WIDTH), np.int8), axis=1)
    graph.add("MatMul", before, weights)


KINDS: dict[str, Callable[[Graph], None]] = {
    "cnn with Resize": convolutions, "T5": transformer, "QDQ": quantized,
}  # fmt: skip


def mask_of_infinity(graph: Graph) -> list[str]:
    """(1 - mask) times FP32's lowest number: 0 times FP16's minus infinity is NaN."""
    attention(graph, -3.4028234e38)
    return ["/f/mask"]


def sum_of_large_products(graph: Graph) -> list[str]:
    """T5's last product overflows, and the norm behind it makes usual numbers of it again."""
    feed_forward(graph, "/f/wo", float(graph.draw.uniform(1e5, 4e5)), residual=False)
    rms_norm(graph, ("/f/pow", "/f/mean", "/f/eps", "/f/root"))
    for node in graph.nodes[-2:-1]:
        node.name = "/f/div"
    return ["/f/wo", "/f/pow", "/f/mean", "/f/eps", "/f/root", "/f/div"]
