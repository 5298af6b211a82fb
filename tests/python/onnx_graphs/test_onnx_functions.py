"""Functions of a model are looked into: a graph whose nodes lie in functions has the findings of the plain one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
from onnx import helper

from grown_graphs import FAULTS, Graph, inputs
from halfscope.onnx import check

pytestmark = pytest.mark.torch  # onnx is installed beside PyTorch
DOMAIN = "own"


def in_functions(model: Any, draw: np.random.Generator) -> Any:
    """The same model with runs of its nodes in functions, some within another one."""
    nodes, functions = list(model.graph.node), []
    for _ in range(int(draw.integers(1, 4))):
        first = int(draw.integers(len(nodes)))
        end = int(draw.integers(first, len(nodes))) + 1
        inside, outside = nodes[first:end], nodes[:first] + nodes[end:]
        made = {name for node in inside for name in node.output}
        asked = {name for node in outside for name in node.input} | {each.name for each in model.graph.output}
        given = list(dict.fromkeys(name for node in inside for name in node.input if name and name not in made))
        results = sorted(made & asked)
        name = f"Function{len(functions)}"
        imports = [helper.make_opsetid("", model.opset_import[0].version), helper.make_opsetid(DOMAIN, 1)]
        functions.append(helper.make_function(DOMAIN, name, given, results, inside, imports))
        nodes[first:end] = [helper.make_node(name, given, results, domain=DOMAIN, name=f"/call{len(functions)}")]
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.node[:]
    changed.graph.node.extend(nodes)
    changed.functions.extend(functions)
    changed.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    changed.ir_version = 9
    return changed


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fault", [None, *FAULTS], ids=lambda fault: getattr(fault, "__name__", "healthy"))
def test_the_findings_are_those_of_the_plain_graph(fault: Any, seed: int, tmp_path: Path) -> None:
    graph = Graph(seed)
    graph.healthy(int(graph.draw.integers(1, 5)))
    if fault is not None:
        fault(graph)
    plain = graph.model()
    wrapped = in_functions(plain, np.random.default_rng(seed))
    found, wanted = check(wrapped, inputs(seed)), check(plain, inputs(seed))
    assert [(each.error, each.floor) for each in found.before] == [(each.error, each.floor) for each in wanted.before]
    assert [node.operation for node in found.keep] == [node.operation for node in wanted.keep]
    assert [name.partition("__")[0] for name in found.names] == wanted.names
    assert "after onnx.inliner.inline_local_functions(model)" in found.about and "inliner" not in wanted.about
    found.save(tmp_path / "mixed.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "mixed.onnx"), full_check=True)
