"""The notebooks: stored without outputs, computing nothing, and running from a clean kernel."""

from __future__ import annotations

import ast
import itertools
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from halfscope.advice import TOLERANCE
from halfscope.results import Experiment, find_or_run, locate, read_experiment, recorded_frame
from recording.source_tree import ROOT
from synthetic import write_results
from synthetic_record import GPU_ARMS, write_record

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# The synthetic experiment that a notebook is run on, and how many figures it then draws.
RUN_ON = {
    "choosing_a_scale": ("detection", 3),
    "gradient_histograms": ("detection", 4),
    "master_copy": ("experiment", 6),
    "reductions_and_tensor_cores": ("reduction", 4),
}
# Figures, what is printed somewhere, and the value of the last cell.
WITH_TORCH = {
    "your_own_ablation": (
        2,
        ["fp16_mixed_dynamic diverges in 2 of 2 seeds", "energies", "Keep energies, norm in FP32: "],
        "",
    ),
    "your_own_model": (
        5,
        ["Over 200 watched steps: without loss scaling FP16 flushes", "Loss scale 2^"],
        "Loss scale 2^",
    ),
}
USERS_OWN = "model"  # the tag of cells that stand for what the reader brings: a model and its training loop
HANGS = 900  # seconds of one cell; they take a few, on a busy machine a minute


def read(path: Path) -> nbformat.NotebookNode:
    return nbformat.read(path, as_version=4)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    return read(request.param)


def code(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def execute(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[nbformat.NotebookNode]:
    """The outputs, from a clean kernel, without an error."""
    notebook = read(path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "lib" / "python"))  # the package alone
    NotebookClient(notebook, timeout=HANGS, kernel_name="python3").execute()
    outputs = [output for cell in code(notebook) for output in cell.outputs]
    assert all(output.output_type != "error" for output in outputs)
    return outputs


def figures_in(outputs: list[nbformat.NotebookNode]) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_every_notebook_is_run() -> None:
    assert [path.stem for path in NOTEBOOKS] == [*RUN_ON, *WITH_TORCH]


def test_outputs_are_stripped(notebook: nbformat.NotebookNode) -> None:
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code(notebook))


def test_names_nothing_that_pytorch_deprecates(notebook: nbformat.NotebookNode) -> None:
    assert [cell.source for cell in notebook.cells if "torch.cuda.amp" in cell.source] == []


def test_computes_nothing(notebook: nbformat.NotebookNode) -> None:
    own = [cell for cell in code(notebook) if USERS_OWN not in cell.metadata.get("tags", [])]
    source = "\n".join(cell.source for cell in own).replace("%matplotlib inline", "")
    for node in ast.walk(ast.parse(source)):
        assert not isinstance(node, (ast.BinOp, ast.For, ast.While, ast.FunctionDef, ast.Lambda, ast.ListComp))
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [getattr(node, "module", None) or alias.name for alias in node.names]
            assert all(module.split(".")[0] == "halfscope" for module in modules)


def test_advises_by_the_rule_that_its_text_names(notebook: nbformat.NotebookNode) -> None:
    """The default one, as reports do: each has one recommendation."""
    for text, cell in itertools.pairwise(notebook.cells):
        if cell.cell_type == "code" and ".advise_scale(" in cell.source:
            assert ".advise_scale()" in cell.source
            assert f"at most {100 * TOLERANCE:g} % of their sum of magnitudes" in " ".join(text.source.split())


@pytest.mark.parametrize("name", RUN_ON)
def test_runs_from_a_clean_kernel(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture, figures = RUN_ON[name]
    experiment: Experiment = request.getfixturevalue(fixture)
    monkeypatch.setenv("HALFSCOPE_RESULTS", str(experiment.folder.parent))
    outputs = execute(ROOT / "notebooks" / f"{name}.ipynb", monkeypatch)
    assert figures_in(outputs) == figures
    assert experiment.summary["verdict"] in outputs[-1]["data"]["text/plain"]


@pytest.mark.torch
@pytest.mark.parametrize("name", WITH_TORCH)
def test_runs_with_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    outputs = execute(ROOT / "notebooks" / f"{name}.ipynb", monkeypatch)
    figures, sentences, last = WITH_TORCH[name]
    assert figures_in(outputs) == figures
    said = "".join(output.text for output in outputs if output.get("name") == "stdout")
    assert [sentence for sentence in sentences if sentence not in said] == []
    assert last in outputs[-1]["data"]["text/plain"]


@pytest.mark.torch
def test_the_report_and_the_last_cell_recommend_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    outputs = execute(ROOT / "notebooks" / "your_own_model.ipynb", monkeypatch)
    said = "".join(output.text for output in outputs if output.get("name") == "stdout")
    _, verdict = ast.literal_eval(outputs[-1]["data"]["text/plain"])
    assert " ".join(verdict.split()) in " ".join(said.split())  # the report breaks lines


@pytest.fixture(scope="session")
def reduction(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return read_experiment(write_results(tmp_path_factory.mktemp("reduction"), name="batchnorm-reduction"))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in whose notebooks/ everything is called, and above which nothing is looked for."""
    upwards = locate._upwards
    monkeypatch.setattr(locate, "_upwards", lambda: (base for base in upwards() if base.is_relative_to(tmp_path)))
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    for name in ("HALFSCOPE_RESULTS", "HALFSCOPE_RECORDED"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_results_are_found_from_the_current_folder_upwards(checkout: Path) -> None:
    quick = write_results(checkout / "results" / "quick", seeds=1, steps=10)
    assert find_or_run("master-copy").folder == quick
    full = write_results(checkout / "results", seeds=1, steps=10)
    assert find_or_run("master-copy").folder == full
    nearest = write_results(checkout / "notebooks" / "results", seeds=1, steps=10)
    assert find_or_run("master-copy").folder == nearest


@pytest.mark.parametrize("carried", [True, False])
def test_a_quick_run_is_made_where_there_are_none(
    carried: bool, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the program that the package carries, else by the one on the path."""
    ready = write_results(checkout / "ready", seeds=1, steps=10)
    program = checkout / "bin" / "halfscope"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >"{checkout}/asked"\nmkdir -p "$5"\ncp -r "{ready}" "$5"\n')
    program.chmod(0o755)
    monkeypatch.setattr(locate, "program", (lambda: program) if carried else no_program)
    if not carried:
        monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    assert find_or_run("master-copy").name == "master-copy"
    assert (checkout / "asked").read_text() == f"run master-copy --quick --out {checkout}/results/quick --resume\n"


def no_program() -> Path:
    raise FileNotFoundError("the package was built without it")


def test_without_results_and_program(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locate, "program", no_program)
    monkeypatch.setenv("PATH", str(checkout))
    with pytest.raises(
        FileNotFoundError, match="no results of master-copy in a folder results/ here or above"
    ) as raised:
        find_or_run("master-copy")
    assert "built without it" in str(raised.value) and "HALFSCOPE_RESULTS" in str(raised.value)


def test_recorded_results_are_found_from_the_current_folder_upwards(checkout: Path) -> None:
    with pytest.warns(UserWarning, match="nothing is recorded of one in a folder experiments/recorded here or above"):
        assert recorded_frame("one").empty
    write_record(checkout / "experiments" / "recorded", "a-gpu", GPU_ARMS)
    assert "test accuracy %, a-gpu" in recorded_frame("one")
    with pytest.warns(UserWarning, match=f"nothing is recorded of other in {checkout}"):
        assert recorded_frame("other").empty
