"""The page on ONNX shows what its code prints, and the command prints the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is not installed")

from doc_blocks import read_blocks
from recording.source_tree import ROOT

pytestmark = pytest.mark.torch


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)


def test_the_page_and_the_command_print_the_report(tmp_path: Path) -> None:
    code, text = read_blocks(ROOT / "docs/guides/onnx.md")
    (tmp_path / "graph.py").write_text(code.code)
    assert run(tmp_path, "graph.py").stdout == text.code
    command = ("-m", "halfscope", "check", "model.onnx", "--inputs", "inputs.npz")
    done = run(tmp_path, *command)
    assert (done.returncode, done.stdout) == (1, text.code)
    assert json.loads(run(tmp_path, *command, "--json").stdout)["report"] == "onnx check"
    assert run(tmp_path, *command, "--format", "bf16").returncode == 0
    done = run(tmp_path, *command, "--output", "mixed.onnx")
    assert (done.returncode, done.stdout) == (1, text.code)
    assert done.stderr.startswith("mixed.onnx: written; computed, its outputs are at most ")
    assert (tmp_path / "mixed.onnx").stat().st_size > 0
    for options, words in (
        (("lost.onnx",), "lost.onnx: no such file"),
        (("model.onnx", "--format", "fp8_e4m3"), "give one of fp16, bf16"),
        (("graph.py:make", "--inputs", "inputs.npz"), "--inputs and --output are for a model.onnx"),
        (("model.onnx", "--output", "lost/mixed.onnx"), "lost/mixed.onnx"),
    ):
        refused = run(tmp_path, "-m", "halfscope", "check", *options)
        assert refused.returncode == 2
        assert refused.stderr.startswith("halfscope check: ") and words in refused.stderr
        assert refused.stderr.count("\n") == 1
