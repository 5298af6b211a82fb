"""`check` of an ONNX model: which nodes must stay FP32, why, and the line for the converter."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from halfscope.formats import Format
from halfscope.onnx.converted import TYPES, unconverted
from halfscope.onnx.evaluator import NodeError
from halfscope.onnx.graphs import GraphNode, Graphs
from halfscope.onnx.model_and_inputs import inputs_of, line_of, loaded_model
from halfscope.onnx.node_search import needed_nodes
from halfscope.onnx.runs import Distance, Runs
from halfscope.reporting import Finding, Place, Report, Reported
from halfscope.whole_files import write_whole

_INLINED = "; names are those after onnx.inliner.inline_local_functions(model)"


@dataclass(frozen=True)
class GraphCheck(Reported):
    """Result of `check`.

    keep: nodes that must stay FP32, in the graph's order. before, after: outputs in the format, and with these in FP32.
    is_unhealed: whether FP32 in all nodes does not heal the outputs, since the inputs themselves lose too much.
    """

    keep: tuple[GraphNode, ...]
    before: tuple[Distance, ...]
    after: tuple[Distance, ...]
    reasons: tuple[str, ...]
    about: str
    format: str
    runs: Runs
    is_unhealed: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the nodes to keep, for a converter's list."""
        return [node.name for node in self.keep if node.name]

    @property
    def lines(self) -> dict[str, str]:
        """The line to type by tool, for the FP32 model: onnxruntime's converter, TensorRT, coremltools."""
        names = [*self.runs.graphs.names_in_fp32(), *self.names]
        converter = "onnxconverter_common.float16.convert_float_to_float16"
        return {
            "onnxruntime": f"{converter}(model, keep_io_types=True, node_block_list={names!r})",
            "tensorrt": f"for layer in network: if layer.name in {names!r}: layer.precision = trt.float32",
            "coremltools": f"compute_precision=FP16ComputePrecision(op_selector=lambda op: op.name not in {names!r})",
        }

    def model(self) -> onnx.ModelProto:
        """The model in the format with these nodes in FP32; its inputs and outputs stay FP32."""
        return self.runs.graphs.mixed(self.format.lower(), frozenset(node.number for node in self.keep))

    def save(self, path: str | os.PathLike[str]) -> tuple[Distance, ...]:
        """Writes `model()`, whole or not at all; returns its outputs beside FP32's, computed of the written model.

        The evaluator sums products of FP16 in FP16, which is farther off than hardware that sums in FP32. Raises
        OSError for a path that cannot be written to.
        """
        model = self.model()
        distances = tuple(self.runs.distances(self.runs.results(model)))
        write_whole(Path(path), model.SerializeToString())
        return distances

    @property
    def report(self) -> Report:
        if self.is_unhealed:
            why = f"{_words(self.before)}; FP32 in all nodes does not mend it"
            finding = Finding("inputs", f"keep the inputs in FP32: {self.format} loses too much of them", why, "tried")
            return Report("onnx check", (finding,), self.about)
        if not self.keep:
            text = f"Nothing to change: in {self.format} {_words(self.before)}."
            return Report("onnx check", (), self.about, text)
        return Report("onnx check", (self._first(), *map(self._of_node, self.keep, self.reasons)), self.about)

    def _first(self) -> Finding:
        nameless = [str(node) for node in self.keep if not node.name]
        more = f"; name first: {', '.join(nameless)}" if nameless else ""
        why = f"in {self.format} {_words(self.before)}"
        return Finding(
            "nodes", self.lines["onnxruntime"] + more, why, f"tried: with these in FP32 {_words(self.after)}"
        )

    def _of_node(self, node: GraphNode, reason: str) -> Finding:
        place = None if node.place is None else Place(*node.place)
        return Finding("node", f"{node} in FP32", reason, about=node, place=place)


def check(
    model: str | os.PathLike[str] | onnx.ModelProto,
    inputs: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    format: str = "fp16",
) -> GraphCheck:
    """Finds the nodes of a model that must stay FP32 when the others are computed in 16 bits.

    The graph is computed by ONNX's ReferenceEvaluator, in FP32, with each float result rounded once, and with sets of
    nodes in FP32 until the outputs are FP32's but for round-off; subgraphs of If, Loop and Scan too. Functions of the
    model are inlined first. Sums within a node are FP32's. Noise of one rounding for each result makes the floor.

    A model with tensors in 16 bits was converted, in part or whole: only its nodes in `format` are rounded, and FP32's
    outputs are those of the same graph in FP32, with the file's constants.

    inputs: arrays by the graph's input names, or a .npz file of them; None: random normal numbers, and integers of 0
        and 1, of the graph's shapes, with 2 for an axis without a size: the report says so.
    format: "fp16" or "bf16".

    Raises ImportError without onnx; ValueError for a file that is no model, a model without such tensors, inputs that
    do not fit, another format than these or the file's, and an operation that the evaluator lacks, by its name.
    """
    if format not in TYPES:
        raise ValueError(f"onnx check: format {format!r}; give one of {', '.join(TYPES)}")
    loaded, is_inlined = loaded_model(model)
    converted = unconverted(loaded, format)
    graphs = Graphs(loaded if converted is None else converted.model, converted)
    given, words = inputs_of(graphs.model, inputs)
    words += _INLINED * is_inlined
    try:
        runs = Runs(graphs, given, format, 2.0 ** -Format.of(format).precision)
    except NodeError as error:
        raise ValueError(f"onnx check: {' '.join(str(error).split())[:300]}") from error
    except Exception as error:
        raise ValueError(f"onnx check: the reference evaluator: {line_of(error)}") from error
    return _checked(runs, words)


def _checked(runs: Runs, words: str) -> GraphCheck:
    label = runs.format.upper()
    results = runs.rounded()
    before = tuple(runs.distances(results))
    keep: list[int] = []
    is_ill = any(each.is_beyond for each in before)
    if is_ill:
        keep = needed_nodes([node.number for node in _narrow(runs)], _suspects(runs, results), runs.heals)
    nodes = tuple(runs.graphs.nodes[number] for number in keep)
    after = tuple(runs.distances(runs.rounded(frozenset(keep)))) if keep else before
    narrow = f", {len(_narrow(runs))} of them in {label} in the file" if runs.graphs.converted else ""
    nodes_words = f"{len(runs.graphs.nodes)} nodes{narrow}"
    about = f"Computed: {nodes_words}, {runs.count} runs, {words}. Not looked at: sums within a node."
    reasons = tuple(_reason(runs, node, nodes) for node in nodes)
    return GraphCheck(nodes, before, after, reasons, about, label, runs, is_unhealed=is_ill and not keep)


def _suspects(runs: Runs, results: Mapping[str, Any]) -> list[int]:
    """Nodes whose result is not finite, with finite operands."""
    ill = {
        name for name, value in results.items()
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all()
        and name in runs.exact and np.isfinite(runs.exact[name]).all()
    }  # fmt: skip
    return [
        node.number for node in _narrow(runs)
        if not node.is_inside and ill.intersection(node.outputs) and not ill.intersection(node.inputs)
    ]  # fmt: skip


def _narrow(runs: Runs) -> list[GraphNode]:
    """Nodes that are in 16 bits, unless they are kept."""
    return [node for node in runs.graphs.nodes if node.number not in runs.graphs.wide]


def _reason(runs: Runs, node: GraphNode, kept: tuple[GraphNode, ...]) -> str:
    """A result or a constant that the format does not hold, or an operand that another kept node makes."""
    format = Format.of(runs.format)
    sizes = [_largest(runs.exact.get(name)) for name in node.outputs]
    for size in sizes:
        if size >= format.largest:
            return f"its result is {size:.4g}, {size / format.largest:.2g} times {format.label}'s largest number"
    for name in node.inputs:
        constant = runs.graphs.constants.get(name)
        if constant is not None and constant.size == 1:
            value = float(constant.reshape(-1)[0])
            rounded = format.round(value)
            if value != 0 and (rounded == 0 or abs(rounded) == inf):
                return f"its constant {value:.6g} is {rounded:g} in {format.label}"
    for size in sizes:
        if 0 < size < format.smallest_normal:
            return f"its result is {size:.4g} at most, below {format.label}'s smallest normal number"
    makers = [str(other) for other in kept if set(other.outputs) & set(node.inputs)]
    if makers:
        return f"it takes the FP32 result of {makers[0]}"
    return f"{format.label} loses what it computes: with it rounded the outputs are not FP32's"


def _largest(value: Any) -> float:
    """Largest finite magnitude of a float result; 0 for another one."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return 0.0
    return float(np.abs(value[np.isfinite(value)]).max(initial=0.0))


def _words(distances: tuple[Distance, ...]) -> str:
    worst = max(distances, key=lambda each: each.error / each.limit if each.limit else each.error, default=None)
    if worst is None:
        return "no output is finite in FP32 either: nothing was compared"
    if worst.error == inf:
        return f"output {worst.name} is not finite"
    return f"output {worst.name} is {worst.error:.2g} off (round-off: {worst.floor:.2g})"
