"""ONNX's ReferenceEvaluator with onnxruntime for single nodes, our rounding and noise, and errors that name a node."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun, RuntimeContextError

from halfscope.arithmetic import round as rounded

DOMAIN = "halfscope"  # our own operations: Rounding and Noise
# Operations that take onnxruntime a fraction of the evaluator's time, in FP32.
_HEAVY = ("AveragePool", "Conv", "ConvTranspose", "GRU", "LSTM", "MaxPool", "RNN", "Resize")


class NodeError(Exception):
    """Failure of one node: its name, its operation, and why."""


class Rounding(OpRun):
    """Numbers rounded to the attribute `format`."""

    op_domain = DOMAIN

    def _run(self, x: np.ndarray, format: str = "") -> tuple[np.ndarray]:
        return (rounded(x, format),)


class Noise(OpRun):
    """Numbers times 1 + e, |e| <= `unit`, where the format does not hold them: a rounding has no other error."""

    op_domain = DOMAIN

    def _run(self, x: np.ndarray, format: str = "", unit: float = 0.0, seed: int = 0) -> tuple[np.ndarray]:
        noise = unit * np.random.default_rng(seed).uniform(-1, 1, x.shape)
        with np.errstate(all="ignore"):
            return (np.where(rounded(x, format) == x, x, x * (1 + noise)).astype(np.float32),)


class RuntimeNode(OpRun):
    """A node that onnxruntime computes: one whose operation is heavy, or that the evaluator lacks."""

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        node, versions = self.onnx_node, self.run_params["opsets"]
        types = tuple(None if each is None else np.asarray(each).dtype for each in inputs)
        attributes = tuple(each.SerializeToString(deterministic=True) for each in node.attribute)
        kind = (node.op_type, node.domain, attributes, tuple(map(bool, node.output)))
        session = _session(kind, types, tuple(sorted(versions.items())))
        given = {f"i{place}": np.asarray(each) for place, each in enumerate(inputs) if each is not None}
        found = iter(session.run(None, given))
        return tuple(next(found) if name else None for name in node.output)


class Evaluator(ReferenceEvaluator):
    """An evaluator of a graph, and by itself of its subgraphs."""

    def __init__(self, proto: Any, **options: Any) -> None:
        options["new_ops"] = [*(options.get("new_ops") or ()), Rounding, Noise]
        super().__init__(proto, **options)

    def _init(self) -> None:
        super()._init()
        for node in self.rt_nodes_:
            node.run = partial(_named, node.onnx_node, node.run)

    def _load_impl(self, node: onnx.NodeProto, input_types: Any = None) -> Any:
        is_whole = not any(each.ref_attr_name for each in node.attribute)  # not by attributes of a function
        if node.domain == "" and node.op_type in _HEAVY and is_whole and runtime() is not None:
            return RuntimeNode
        try:
            return super()._load_impl(node, input_types)
        except RuntimeContextError:
            raise
        except Exception as error:
            if is_whole and runtime() is not None:
                return RuntimeNode
            version = self.opsets.get(node.domain, "?")
            operation = f"{node.domain or 'ai.onnx'} {version}"
            raise NodeError(
                f"{_words(node)}: onnx's evaluator lacks this operation of {operation}; pip install onnxruntime, which "
                "has more"
            ) from error


@cache
def runtime() -> Any:
    """onnxruntime; None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    return onnxruntime


@cache
def _session(kind: tuple[Any, ...], types: tuple[Any, ...], versions: tuple[tuple[str, int], ...]) -> Any:
    """A session of one node, whose weights are inputs: runs with other nodes in FP32 share it."""
    operation, domain, attributes, outputs = kind
    tensor = partial(helper.make_tensor_value_info, shape=None)
    named = [f"i{place}" if each is not None else "" for place, each in enumerate(types)]
    node = helper.make_node(operation, named, [f"o{k}" if has else "" for k, has in enumerate(outputs)], domain=domain)
    node.attribute.extend(map(onnx.AttributeProto.FromString, attributes))
    inputs = [tensor(name, helper.np_dtype_to_tensor_dtype(each)) for name, each in zip(named, types) if name]
    results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    imports = [helper.make_opsetid(*each) for each in versions if each[0] != DOMAIN]
    model = helper.make_model(helper.make_graph([node], "node", inputs, results), opset_imports=imports, ir_version=8)
    options = runtime().SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    return runtime().InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def _named(node: onnx.NodeProto, run: Any, *inputs: Any, **options: Any) -> Any:
    try:
        return run(*inputs, **options)
    except NodeError:
        raise
    except Exception as error:
        raise NodeError(f"{_words(node)}: {' '.join(f'{type(error).__name__}: {error}'.split())}") from error


def _words(node: onnx.NodeProto) -> str:
    name = node.name or next((each for each in node.output if each), "?").partition("@")[0]
    return f"node {name} ({node.op_type})"
