"""The page on one block of a large model shows what its code prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")

from doc_blocks import read_blocks
from recording.source_tree import ROOT

pytestmark = pytest.mark.torch


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    blocks = read_blocks(ROOT / "docs/guides/real-size.md")
    code = next(block.code for block in blocks if block.needs_torch)
    shown = next(block.code for block in blocks if block.language == "text")
    (tmp_path / "train.py").write_text(code)
    done = subprocess.run([sys.executable, "train.py"], capture_output=True, text=True, check=True, cwd=tmp_path)
    printed = re.sub(r"3 blocks of \S+,", "3 blocks of checkpoint/,", done.stdout)
    assert printed.startswith(shown.rstrip()), printed
    assert re.findall(r"halfscope: (model\.layers\.\d) saved", done.stderr) == [f"model.layers.{i}" for i in (2, 1, 0)]
