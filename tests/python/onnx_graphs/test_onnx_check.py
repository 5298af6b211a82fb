"""ONNX graphs in FP16 and BF16: faults planted in random graphs, healthy graphs, subgraphs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto, helper, numpy_helper

from grown_graphs import FAULTS, WIDTH, Graph, inputs, mean_square
from halfscope.onnx import GraphCheck, check

pytestmark = pytest.mark.torch  # onnx is installed beside PyTorch


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_nodes_of_a_fault_are_named(fault: Any, seed: int, opset: int) -> None:
    graph = Graph(seed, opset)
    graph.healthy(int(graph.draw.integers(0, 5)))
    wanted = fault(graph)
    found = check(graph.model(), inputs(seed))
    assert found.keep, found.report
    assert set(found.names) <= set(wanted), found.report
    assert not any(each.is_beyond for each in found.after)
    assert "node_block_list" in found.report.findings[0].change


def close(model: Any, mixed: Any, given: dict[str, np.ndarray]) -> bool:
    """Whether onnxruntime computes the same of both."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    outputs = [
        runtime.InferenceSession(each.SerializeToString(), options, ["CPUExecutionProvider"]).run(None, given)[0]
        for each in (model, mixed)
    ]
    return bool(np.linalg.norm(outputs[1] - outputs[0]) <= 0.01 * np.linalg.norm(outputs[0]))


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_mixed_model_is_right_in_onnxruntime(fault: Any, seed: int, opset: int, tmp_path: Path) -> None:
    graph = Graph(seed, opset)
    graph.healthy(int(graph.draw.integers(0, 5)))
    fault(graph)
    made, given = graph.model(), inputs(seed)
    found = check(made, given)
    assert all(each.error < 0.05 for each in found.save(tmp_path / "mixed.onnx"))
    mixed = onnx.load(tmp_path / "mixed.onnx")
    onnx.checker.check_model(mixed, full_check=True)
    kept = [node for node in mixed.graph.node if node.name in found.names]
    assert len(kept) == len(found.names) and not any(name.endswith("@16") for node in kept for name in node.input)
    assert close(made, mixed, given)


@pytest.mark.parametrize("seed", range(12))
def test_a_healthy_model_is_converted_whole(seed: int) -> None:
    graph = Graph(seed, 13 if seed % 2 else 20)
    graph.healthy(int(graph.draw.integers(2, 12)))
    made, given = graph.model(), inputs(seed)
    mixed = check(made, given).model()
    onnx.checker.check_model(mixed, full_check=True)
    taken = {name for node in mixed.graph.node for name in node.input}
    held = [each for each in mixed.graph.initializer if each.name in taken]
    wide = [each.name for each in held if each.data_type == TensorProto.FLOAT]
    assert wide == []
    assert len([node for node in mixed.graph.node if node.op_type == "Cast"]) == 2  # the input's and the output's
    assert close(made, mixed, given)


def test_a_mixed_model_has_branches_and_loops() -> None:
    for made in (square_in_branch(True), growing_loop(12)):
        mixed = check(made, inputs(1)).model()
        onnx.checker.check_model(mixed, full_check=True)
        assert close(made, mixed, inputs(1))


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_said_of_a_healthy_graph(format: str, seed: int) -> None:
    graph = Graph(seed, 13 if seed % 2 else 20)
    graph.healthy(int(graph.draw.integers(2, 12)))
    found = check(graph.model(), inputs(seed), format)
    assert not found.keep and not found.report.findings, found.report
    assert str(found.report).startswith("Nothing to change")


def square_in_branch(condition: bool) -> Any:
    """If: one branch squares large numbers and takes the root again."""

    def value(name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", WIDTH])

    ill = [
        helper.make_node("Mul", ["x", "big"], ["s"], name="/then/scale"),
        helper.make_node("Mul", ["s", "s"], ["q"], name="/then/square"),
        helper.make_node("Sqrt", ["q"], ["r"], name="/then/root"),
        helper.make_node("Div", ["r", "big"], ["a"], name="/then/back"),
    ]
    then = helper.make_graph(ill, "then", [], [value("a")])
    other = helper.make_graph([helper.make_node("Tanh", ["x"], ["b"], name="/else/tanh")], "else", [], [value("b")])
    nodes = [helper.make_node("If", ["yes"], ["y"], name="/if", then_branch=then, else_branch=other)]
    held = [
        numpy_helper.from_array(np.float32(1000), "big"), numpy_helper.from_array(np.asarray(condition), "yes")
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    made.ir_version = 9
    onnx.checker.check_model(made)
    return made


def growing_loop(turns: int) -> Any:
    """Loop: each turn triples the numbers, and what follows divides them again."""

    def value(name: str, shape: Any, type_: int = TensorProto.FLOAT) -> Any:
        return helper.make_tensor_value_info(name, type_, shape)

    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"], name="/loop/go"),
            helper.make_node("Mul", ["h", "three"], ["next"], name="/loop/mul"),
        ],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("h", ["N", WIDTH])],
        [value("on", [], TensorProto.BOOL), value("next", ["N", WIDTH])],
    )  # fmt: skip
    nodes = [
        helper.make_node("Loop", ["turns", "yes", "x"], ["grown"], name="/loop", body=body),
        helper.make_node("Div", ["grown", "size"], ["y"], name="/shrink"),
    ]
    held = [
        numpy_helper.from_array(np.asarray(True), "yes"),
        numpy_helper.from_array(np.asarray(turns, np.int64), "turns"), numpy_helper.from_array(np.float32(3), "three"),
        numpy_helper.from_array(np.float32(min(3.0**turns, 3e4)), "size"),
    ]  # fmt: skip
    graph = helper.make_graph(nodes, "g", [value("x", ["N", WIDTH])], [value("y", ["N", WIDTH])], held)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    made.ir_version = 9
    onnx.checker.check_model(made)
    return made


def test_nodes_of_a_branch_are_named() -> None:
    found = check(square_in_branch(True), inputs(1))
    assert set(found.names) <= {"/then/square", "/then/root"} and found.names, found.report
    assert not check(square_in_branch(False), inputs(1)).keep


def test_nodes_of_a_loop_are_named() -> None:
    found = check(growing_loop(12), inputs(2))
    assert "/loop/mul" in found.names, found.report
    assert not check(growing_loop(4), inputs(2)).keep


def test_a_file_and_random_inputs_are_taken(tmp_path: Path) -> None:
    graph = Graph(3)
    mean_square(graph)
    onnx.save(graph.model(), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", **inputs(3))
    assert check(tmp_path / "m.onnx", tmp_path / "x.npz").names == ["/f/square", "/f/root"]
    found = check(str(tmp_path / "m.onnx"))
    assert found.names == ["/f/square", "/f/root"]
    assert "random inputs of the graph's shapes" in str(found.report)
    assert set(found.lines) == {"onnxruntime", "tensorrt", "coremltools"}
    assert isinstance(found, GraphCheck) and found.report.to_dict()["report"] == "onnx check"


def test_the_line_of_the_source_is_the_exporters() -> None:
    graph = Graph(5)
    mean_square(graph)
    made = graph.model()
    for node in made.graph.node:
        trace = node.metadata_props.add()
        trace.key, trace.value = "pkg.torch.onnx.stack_trace", f'File "model.py", line {len(node.name)}, in forward'
    finding = check(made, inputs(5)).report.findings[1]
    assert str(finding).startswith("model.py:9: /f/square (Mul) in FP32")


def test_what_is_no_model_is_refused_in_one_line(tmp_path: Path) -> None:
    graph = Graph(0)
    graph.healthy(2)
    made = graph.model()
    (tmp_path / "text.onnx").write_text("no model")
    for call, words in (
        (lambda: check(tmp_path / "lost.onnx"), "no such file"),
        (lambda: check(tmp_path / "text.onnx"), "text.onnx"),
        (lambda: check(made, {"z": np.ones(3)}), "no input 'x'; the graph has x"),
        (lambda: check(made, tmp_path / "lost.npz"), "lost.npz: no such file"),
        (lambda: check(made, {"x": np.ones((2, 3), np.float32)}), "input 'x' is 2 x 3, and the graph takes N x 12"),
        (lambda: check(made, format="fp8_e4m3"), "give one of fp16, bf16"),
    ):
        with pytest.raises(ValueError, match="onnx check: ") as error:
            call()
        assert words in str(error.value) and "\n" not in str(error.value)
    with pytest.raises(TypeError, match="give a path or an onnx.ModelProto"):
        check(3)  # type: ignore[arg-type]
