"""The folder of a watched run: there as the run goes, never one over another, and honest about how it ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from halfscope.report.page import write_report
from halfscope.torch import watch
from planted import Planted, records, train
from recording.source_tree import ROOT

KILLED = """
import os, signal, sys
import torch
from halfscope.torch import watch
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
watched = watch(model, 2, optimizer=optimizer, out=sys.argv[1])
for step in range(1, 8):
    model(torch.ones(5, 3)).sum().backward()
    optimizer.step()
    watched.log(step)
os.kill(os.getpid(), signal.SIGTERM)
signal.pause()
"""


def test_a_killed_run_leaves_its_steps(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib" / "python")}
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", KILLED, tmp_path / "killed"], env=environment)
    assert ran.returncode == -signal.SIGTERM
    steps = records(tmp_path / "killed", "metrics.jsonl")
    assert [(line["step"], line["loss"]) for line in steps] == [(step, step) for step in range(1, 7)]
    assert {line["step"] for line in records(tmp_path / "killed", "histograms.jsonl")} == {1, 2, 4, 6}
    assert (tmp_path / "killed/watched/seed0/status").read_text() == "RUNNING\n"


def test_a_run_is_not_written_over_another(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, out=tmp_path / "mine"):
        train(model, optimizer, 2)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ValueError, match=r"^watch: out='.*mine' holds a run already; give a new folder$"):
        watch(model, 1, optimizer=optimizer, out=tmp_path / "mine")
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    train(model, optimizer, 1)
    assert not any(module._forward_hooks for module in model.modules())  # the refused one left none


def test_an_exception_in_the_block_fails_the_run(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(RuntimeError), watch(model, 1, optimizer=optimizer, out=tmp_path / "mine"):
        train(model, optimizer, 2)
        raise RuntimeError("out of\nmemory")
    folder = tmp_path / "mine/watched/seed0"
    assert (folder / "status").read_text() == "FAILED: RuntimeError: out of memory\n"
    assert not (folder / "summary.json").exists() and len(records(tmp_path / "mine", "metrics.jsonl")) == 2
    train(model, optimizer, 1)
    assert len(records(tmp_path / "mine", "metrics.jsonl")) == 2


def test_a_loss_that_is_not_finite_is_divergence(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, out=tmp_path / "mine") as watched:
        train(model, optimizer, 1)
        watched.log(float("nan"))
    summary = json.loads((tmp_path / "mine/watched/seed0/summary.json").read_text())
    assert summary["diverged"] is True and summary["diverged_step"] == 1


def test_the_environment_names_the_processor(tmp_path: Path) -> None:
    model = Planted()
    with watch(model, 1, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), out=tmp_path / "mine"):
        pass
    assert json.loads((tmp_path / "mine/watched/seed0/environment.json").read_text())["cpu"]


@pytest.mark.parametrize(("dtype", "written"), [(torch.float32, "fp32"), (torch.float16, "fp16")])
def test_the_configuration_has_the_format_of_the_gradients(dtype: torch.dtype, written: str, tmp_path: Path) -> None:
    model = Planted().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, out=tmp_path / "mine"):
        model(torch.ones(1000, dtype=dtype)).sum().backward()
        optimizer.step()
    config = json.loads((tmp_path / "mine/watched/seed0/config.json").read_text())
    assert config["activation_gradient"] == written


def test_the_report_of_a_watched_run_claims_no_command_and_no_paper(tmp_path: Path) -> None:
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, out=tmp_path / "mine") as watched:
        train(model, optimizer, 2)
        watched.log(0.5)
    page = write_report(tmp_path / "mine").read_text()
    assert "How to repeat it" not in page and "The paper:" not in page and "A PyTorch model, watched" in page
