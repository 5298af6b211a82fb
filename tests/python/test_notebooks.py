"""The notebooks: stored without outputs, computing nothing, and running from a clean kernel."""

from __future__ import annotations

import ast
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from halfscope import locate
from halfscope.results import Experiment
from synthetic import write_results

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# The synthetic experiment that a notebook is run on, and how many figures it then draws.
RUN_ON = {
    "choosing_a_scale": ("detection", 3),
    "gradient_histograms": ("detection", 4),
    "master_copy": ("experiment", 6),
}


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    return read(request.param)


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_every_notebook_is_run() -> None:
    assert [path.stem for path in NOTEBOOKS] == list(RUN_ON)


def test_outputs_are_stripped(notebook: nbformat.NotebookNode) -> None:
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code(notebook))


def test_computes_nothing(notebook: nbformat.NotebookNode) -> None:
    source = "\n".join(cell.source for cell in code(notebook)).replace("%matplotlib inline", "")
    for node in ast.walk(ast.parse(source)):
        assert not isinstance(node, (ast.BinOp, ast.For, ast.While, ast.FunctionDef, ast.Lambda, ast.ListComp))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [getattr(node, "module", None) or alias.name for alias in node.names]
            assert all(module.split(".")[0] == "halfscope" for module in modules)


@pytest.mark.parametrize("name", RUN_ON)
def test_runs_from_a_clean_kernel(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture, figures = RUN_ON[name]
    experiment: Experiment = request.getfixturevalue(fixture)
    notebook = read(ROOT / "notebooks" / f"{name}.ipynb")
    monkeypatch.setenv("HALFSCOPE_RESULTS", str(experiment.folder.parent))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "lib" / "python"))
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    assert all(output.output_type != "error" for output in outputs)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == figures
    assert experiment.summary["verdict"] in outputs[-1]["data"]["text/plain"]


def test_results_are_found_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HALFSCOPE_RESULTS", raising=False)
    monkeypatch.setattr(locate, "ROOT", tmp_path)
    quick = write_results(tmp_path / "results" / "quick", seeds=1, steps=10)
    assert locate.find_or_run("master-copy").folder == quick
    full = write_results(tmp_path / "results", seeds=1, steps=10)
    assert locate.find_or_run("master-copy").folder == full


def test_a_quick_run_is_made_where_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ready = write_results(tmp_path / "ready", seeds=1, steps=10)
    program = tmp_path / "halfscope"
    program.write_text(f'#!/bin/sh\necho "$@" >"{tmp_path}/asked"\nmkdir -p "$5"\ncp -r "{ready}" "$5"\n')
    program.chmod(0o755)
    monkeypatch.delenv("HALFSCOPE_RESULTS", raising=False)
    monkeypatch.setattr(locate, "ROOT", tmp_path)
    monkeypatch.setattr(locate, "PROGRAM", program)
    assert locate.find_or_run("master-copy").name == "master-copy"
    assert (tmp_path / "asked").read_text() == f"run master-copy --quick --out {tmp_path}/results/quick --resume\n"


def test_without_results_and_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HALFSCOPE_RESULTS", raising=False)
    monkeypatch.setattr(locate, "ROOT", tmp_path)
    monkeypatch.setattr(locate, "PROGRAM", tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="run tools/reproduce"):
        locate.find_or_run("master-copy")
