"""Files that were converted to 16 bits, in part or whole: what `check --output` wrote, and whole conversions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import TensorProto

from graph_kinds import KINDS
from grown_graphs import FAULTS, Graph, inputs
from halfscope.onnx import GraphCheck, check
from test_onnx_check import growing_loop, square_in_branch

pytestmark = pytest.mark.torch  # onnx is installed beside PyTorch


def planted(fault: Any, seed: int, opset: int) -> Any:
    graph = Graph(seed, opset)
    graph.healthy(int(graph.draw.integers(0, 5)))
    fault(graph)
    return graph.model()


def of_kind(kind: str, opset: int) -> Any:
    graph = Graph(3, opset)
    KINDS[kind](graph)
    return graph.model()


def round_trip(first: GraphCheck, given: Any, path: Path) -> GraphCheck:
    onnx.save(first.model(), path)
    return check(path, given, first.format.lower())


MODELS: dict[str, Any] = {
    **{f"{each.__name__}-{opset}": (lambda f=each, o=opset: planted(f, 5, o)) for each in FAULTS for opset in (13, 20)},
    **{f"{kind}-{opset}": (lambda k=kind, o=opset: of_kind(k, o)) for kind in KINDS for opset in (13, 20)},
    "branch": lambda: square_in_branch(True), "other branch": lambda: square_in_branch(False),
    "loop": lambda: growing_loop(12), "short loop": lambda: growing_loop(2),
}  # fmt: skip


@pytest.mark.parametrize("format", ["fp16", "bf16"])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_said_of_a_file_that_check_wrote(name: str, format: str, tmp_path: Path) -> None:
    first = check(MODELS[name](), inputs(5), format)
    again = round_trip(first, inputs(5), tmp_path / "mixed.onnx")
    assert again.keep == (), again.report
    assert "Nothing to change" in str(again.report) and f"of them in {format.upper()} in the file" in str(again.report)
    for own, other in zip(again.before, first.after):
        assert own.error <= max(own.limit, 2 * other.error)


def computed(model: Any, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs by onnxruntime."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL  # it takes casts away
    session = runtime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, given)
    return found


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(np.float64(found) - expected) / np.linalg.norm(np.float64(expected)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_runs_of_a_mixed_file_are_onnxruntimes(fault: Any, seed: int, tmp_path: Path) -> None:
    """The emulated run is the file's, the exact one the file's without roundings, and the file is written as it was."""
    made, given = planted(fault, seed, 20), inputs(seed)
    again = round_trip(check(made, given), given, tmp_path / "mixed.onnx")
    (name,) = (value.name for value in made.graph.output)
    (mixed,) = computed(onnx.load(tmp_path / "mixed.onnx"), given)
    (exact,) = computed(made, given)
    assert distance(again.runs.rounded()[name], mixed) <= 0.02
    assert distance(again.runs.exact[name], exact) <= 0.02
    (written,) = computed(again.model(), given)
    assert distance(written, mixed) <= 0.01


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_the_nodes_of_a_whole_conversion_are_named(fault: Any, seed: int, opset: int, tmp_path: Path) -> None:
    """A constant that FP16 does not hold is lost in the file: what the same graph makes of it in FP32 is right."""
    graph = Graph(seed, opset)
    graph.healthy(int(graph.draw.integers(0, 5)))
    wanted = fault(graph)
    made, given = graph.model(), inputs(seed)
    whole = check(made, given).runs.graphs.mixed("fp16", frozenset())
    held = [np.float16(value) for value in graph.constants.values()]
    is_lost = any(
        (h == 0).sum() > (v == 0).sum() or not np.isfinite(h).all() for h, v in zip(held, graph.constants.values())
    )
    found = check(whole, given)
    assert set(found.names) <= set(wanted), found.report
    assert found.keep or is_lost, found.report
    assert not any(each.is_beyond for each in found.after)


def with_half_inputs(model: Any) -> Any:
    """A file whose inputs and outputs are in FP16 too."""
    whole = check(model, inputs(1)).runs.graphs.mixed("fp16", frozenset())
    for value in [*whole.graph.input, *whole.graph.output]:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    for node in whole.graph.node:
        if node.op_type == "Cast" and node.output[0] in {value.name for value in whole.graph.output}:
            node.attribute[0].i = TensorProto.FLOAT16
    onnx.checker.check_model(whole, full_check=True)
    return whole


@pytest.mark.parametrize("seed", range(6))
def test_inputs_and_outputs_may_be_in_16_bits(seed: int) -> None:
    graph = Graph(seed)
    graph.healthy(4)
    whole, given = with_half_inputs(graph.model()), inputs(seed)
    found = check(whole, given)
    assert found.keep == () and found.runs.graphs.converted.inputs == {"x"}
    (expected,) = computed(whole, {"x": given["x"].astype(np.float16)})
    (name,) = (value.name for value in whole.graph.output)
    assert distance(found.runs.rounded()[name], expected) <= 0.02


def test_a_file_in_another_format_is_refused(tmp_path: Path) -> None:
    graph = Graph(1)
    graph.healthy(3)
    check(graph.model(), inputs(1), "bf16").save(tmp_path / "mixed.onnx")
    with pytest.raises(ValueError, match=r'the file has tensors in BF16; give format="bf16"'):
        check(tmp_path / "mixed.onnx", inputs(1))


@pytest.mark.parametrize(("format", "other"), [("fp16", "BF16"), ("bf16", "FP16")])
def test_a_file_in_both_formats_is_refused(format: str, other: str) -> None:
    graph = Graph(1)
    graph.healthy(3)
    model = check(graph.model(), inputs(1), format).model()
    name = model.graph.initializer[0].name
    type_ = TensorProto.BFLOAT16 if other == "BF16" else TensorProto.FLOAT16
    model.graph.initializer.append(onnx.helper.make_tensor(f"{name}/other", type_, [1], [1.0]))
    with pytest.raises(ValueError, match=f"tensors in {other} and in {format.upper()}; give one with one of them"):
        check(model, inputs(1), format)


def test_the_converters_list_has_what_the_file_kept(tmp_path: Path) -> None:
    """A fault behind one that the file heals: the line is for the FP32 model."""
    graph = Graph(2)
    first = FAULTS[0](graph)
    healed = check(graph.model(), inputs(2))
    second = [f"{name}/again" for name in FAULTS[0](graph)]
    made = graph.model()
    for node in reversed(made.graph.node):  # the later ones have new names
        if node.name in first and node.name + "/again" in second:
            node.name += "/again"
            second.remove(node.name)
    kept = [node.number for node in check(made, inputs(2)).runs.graphs.nodes if node.name in healed.names]
    half = check(made, inputs(2)).runs.graphs.mixed("fp16", frozenset(kept))
    found = check(half, inputs(2))
    assert found.keep and all(name.endswith("/again") for name in found.names), found.report
    assert all(repr(name) in found.lines["onnxruntime"] for name in [*healed.names, *found.names])


def test_the_command_takes_what_it_wrote(tmp_path: Path) -> None:
    onnx.save(planted(FAULTS[0], 1, 20), tmp_path / "model.onnx")
    np.savez(tmp_path / "inputs.npz", **inputs(1))
    for file, other, status in (("model.onnx", "mixed.onnx", 1), ("mixed.onnx", "again.onnx", 0)):
        command = [sys.executable, "-m", "halfscope", "check", file, "--inputs", "inputs.npz", "--output", other]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == status, done.stderr
    assert "Nothing to change" in done.stdout
