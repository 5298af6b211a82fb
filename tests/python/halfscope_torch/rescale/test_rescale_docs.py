"""The page on weights that fit FP16 shows what its code prints."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from doc_blocks import read_blocks
from recording.source_tree import ROOT

pytestmark = pytest.mark.torch


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    blocks = read_blocks(ROOT / "docs/guides/weights-that-fit-fp16.md")
    shown = [text.code for code, text in pairwise(blocks) if (code.language, text.language) == ("python", "text")]
    script = tmp_path / "page.py"
    script.write_text("\n".join(block.code for block in blocks if block.language == "python"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert len(shown) == 2 and done.stdout == "".join(shown), done.stdout
