"""Kinds of ONNX graphs, opset 13 and 20: eight planted faults are named, and nothing is said of healthy ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto, helper

from graph_kinds import KINDS, mask_of_infinity, mean, rms_norm, sum_of_large_products
from grown_graphs import FAULTS, WIDTH, Graph, inputs, reciprocal_of_square, small_epsilon
from halfscope.onnx import check, evaluator

pytestmark = pytest.mark.torch  # onnx is installed beside PyTorch
EIGHT = [*FAULTS, mask_of_infinity, sum_of_large_products]


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", EIGHT, ids=lambda fault: fault.__name__)
def test_the_nodes_of_a_fault_are_named_in_each_kind(fault: Any, kind: str, opset: int) -> None:
    for seed in range(3):
        graph = Graph(seed, opset)
        KINDS[kind](graph)
        wanted = fault(graph)
        if seed % 2 and kind != "QDQ":  # a quantizer's clipped range hides what lies before it
            KINDS[kind](graph)
        found = check(graph.model(), inputs(seed))
        assert found.names and set(found.names) <= set(wanted), f"{seed}: {found.report}"
        assert not any(each.is_beyond for each in found.after)


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_said_of_a_healthy_network(kind: str, format: str, opset: int) -> None:
    for seed in range(8):
        graph = Graph(seed, opset)
        for _ in range(int(graph.draw.integers(1, 4))):
            KINDS[kind](graph)
        found = check(graph.model(), inputs(seed), format)
        assert not found.report.findings, f"{seed}: {found.report}"
        assert all(each.floor < 0.1 for each in found.before), found.before


def test_the_reason_is_the_number_that_the_format_does_not_hold() -> None:
    """Beyond the largest number, below the smallest normal one, a constant that becomes 0."""
    reasons = ""
    for fault in (sum_of_large_products, reciprocal_of_square, small_epsilon):
        for seed in range(4):
            graph = Graph(seed, 20)
            KINDS["cnn with Resize"](graph)
            fault(graph)
            found = check(graph.model(), inputs(seed))
            reasons += "\n".join(found.reasons) + "\n"
            for node, reason in zip(found.keep, found.reasons):
                largest = np.abs(found.runs.exact[node.outputs[0]]).max()
                assert ("times FP16's largest number" in reason) == (largest >= 65504), (reason, largest)
                assert "below FP16's smallest normal number" not in reason or 0 < largest < 2.0**-14
    for words in ("times FP16's largest number", "at most, below FP16's smallest normal number", " is 0 in FP16"):
        assert words in reasons, reasons


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_in_two_files_is_the_same(kind: str, tmp_path: Path) -> None:
    graph = Graph(1, 20)
    KINDS[kind](graph)
    wanted = sum_of_large_products(graph)
    made = graph.model()
    own = check(made, inputs(1))
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="far.bin", size_threshold=0)
    found = check(tmp_path / "m.onnx", inputs(1))
    assert found.names == own.names and set(found.names) <= set(wanted) and found.before == own.before
    assert all(each.error < 0.1 for each in found.save(tmp_path / "mixed.onnx"))


@pytest.mark.parametrize("seed", range(20))
def test_the_floor_is_finite_behind_an_exponent_and_a_mask(seed: int) -> None:
    """Noise on an exponent of 2 makes NaN of negative numbers; a format that holds 2, 0 and 1 has no error there."""
    graph = Graph(seed, 13 if seed % 2 else 20)
    rms_norm(graph)
    mean(graph, graph.last)
    graph.add("Add", graph.last, "x")
    (found,) = check(graph.model(), inputs(seed)).before
    assert 1e-5 < found.floor < 0.01 and found.error < found.limit < 0.05


def test_onnxruntime_computes_heavy_nodes_as_the_evaluator_does(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for seed in range(6):
        graph = Graph(seed, 13 if seed % 2 else 20)
        KINDS["cnn with Resize"](graph)
        made, given = graph.model(), inputs(seed)
        fast = evaluator.Evaluator(made)
        kinds = [type(node) is evaluator.RuntimeNode for node in fast.rt_nodes_]
        assert sum(kinds) == 3  # Conv, Resize, a pool
        results = [fast.run(None, given)[0]]
        with monkeypatch.context() as without:
            without.setattr(evaluator, "runtime", lambda: None)
            slow = evaluator.Evaluator(made)
            assert not any(type(node) is evaluator.RuntimeNode for node in slow.rt_nodes_)
            results.append(slow.run(None, given)[0])
        np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)


def value(name: str, shape: list[Any], type_: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, type_, shape)


def model(nodes: list[Any], opset: int, domains: tuple[str, ...] = ()) -> Any:
    graph = helper.make_graph(nodes, "g", [value("x", ["N", WIDTH])], [value("y", ["N", WIDTH])])
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def test_an_operation_of_onnxruntimes_own_is_computed() -> None:
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    nodes = [helper.make_node("FastGelu", ["x"], ["y"], name="/gelu", domain="com.microsoft")]
    found = check(model(nodes, 17, ("com.microsoft",)), inputs(0))
    assert not found.report.findings and "Computed: 1 nodes" in str(found.report)


@pytest.mark.parametrize("has_runtime", [True, False])
@pytest.mark.parametrize(
    ("operation", "domain"), [("Vanish", "my.domain"), ("Vanish", ""), ("FastGelu", "com.microsoft")]
)
def test_an_operation_that_nobody_has_is_named(
    operation: str, domain: str, has_runtime: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_runtime:
        pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
        if domain == "com.microsoft":
            pytest.skip("onnxruntime has it")
    else:
        monkeypatch.setattr(evaluator, "runtime", lambda: None)
    nodes = [
        helper.make_node("Tanh", ["x"], ["t"]),
        helper.make_node(operation, ["t"], ["y"], name="/v", domain=domain),
    ]
    with pytest.raises(ValueError, match=rf"^onnx check: node /v \({operation}\): ") as error:
        check(model(nodes, 17, (domain,) if domain else ()), inputs(0))
    assert "\n" not in str(error.value)
    assert has_runtime or f"lacks this operation of {domain or 'ai.onnx'} " in str(error.value)


def test_a_node_that_fails_is_named_within_a_branch_too() -> None:
    gather = helper.make_node("Gather", ["x", "far"], ["t"], name="/take", axis=1)
    far = helper.make_node("Constant", [], ["far"], value_ints=[0, 99])
    sliced = [far, gather, helper.make_node("ReduceSum", ["t"], ["s"]), helper.make_node("Add", ["x", "s"], ["y"])]
    with pytest.raises(ValueError, match=r"^onnx check: node /take \(Gather\): IndexError: index 99 is out of bounds"):
        check(model(sliced, 17), inputs(0))
    then = helper.make_graph(
        [*sliced[:3], helper.make_node("Add", ["x", "s"], ["a"])], "t", [], [value("a", ["N", 12])]
    )
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "e", [], [value("b", ["N", 12])])
    yes = helper.make_node("Constant", [], ["yes"], value=helper.make_tensor("v", TensorProto.BOOL, [], [True]))
    branch = helper.make_node("If", ["yes"], ["y"], name="/if", then_branch=then, else_branch=other)
    with pytest.raises(ValueError, match=r"^onnx check: node /take \(Gather\): IndexError: "):
        check(model([yes, branch], 17), inputs(0))


@pytest.mark.parametrize("seed", range(6))
def test_inputs_that_the_format_does_not_hold_are_told(seed: int) -> None:
    graph = Graph(seed, 20)
    graph.add("Mul", graph.last, graph.constant(1e-6))
    KINDS["T5"](graph)
    found = check(graph.model(), {"x": 1e6 * inputs(seed)["x"]})
    (finding,) = found.report.findings
    assert finding.change == "keep the inputs in FP32: FP16 loses too much of them"
    assert "FP32 in all nodes does not mend it" in finding.why and found.before[0].floor < 0.01


def test_the_roundings_of_inputs_alone_are_part_of_the_floor() -> None:
    """Also roundings that flip a quantized value, which noise may not flip, as long as the output is of use."""
    more = 0
    for seed in range(40):
        graph = Graph(seed, 20)
        KINDS["QDQ"](graph)
        found = check(graph.model(), inputs(seed))
        runs, (only,) = found.runs, found.before
        alone = runs.distances(runs.rounded(frozenset(node.number for node in runs.graphs.nodes)))[0].error
        assert only.floor >= min(alone, 0.1)
        noisy = [runs.results(runs.graphs.noisy("fp16", 2.0**-11, k)) for k in (1, 2, 3)]
        more += alone > max(runs.distances(each)[0].error for each in noisy)
    assert more > 0, "no graph in which they are more than noise"
