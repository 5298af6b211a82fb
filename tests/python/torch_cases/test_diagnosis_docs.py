"""The page on NaN, and README's second block, show the output of `diagnose` for the page's own code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from doc_blocks import read_blocks
from halfscope.torch.emulation.nodes import numbers_nodes
from recording.source_tree import ROOT

PAGE = ROOT / "docs/start/which-layer-makes-nan.md"
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not numbers_nodes(), reason="diagnose needs PyTorch 2"),
]


def output_of(name: str, code: str, folder: Path) -> str:
    (folder / name).write_text(code)
    return subprocess.run([sys.executable, name], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_outputs_are_those_of_the_code(tmp_path: Path) -> None:
    blocks = read_blocks(PAGE)
    first, second = (block.code for block in blocks if block.language == "python")
    assert next(block.code for block in blocks if block.language == "text") == output_of("train.py", first, tmp_path)
    readme = [block.code for block in read_blocks(ROOT / "README.md")][1]
    assert output_of("loss.py", second, tmp_path).startswith(readme + "\n")
