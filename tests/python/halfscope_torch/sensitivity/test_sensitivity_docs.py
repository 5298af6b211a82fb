"""The page on formats of layers shows what its code prints."""

from __future__ import annotations

import re
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


TEXTS = re.compile(r">([^<>]+)</text>")
FIGURE = ROOT / "notebooks/figures/sensitivity_cost_map.svg"
DRAW = """
import pathlib
from halfscope.plotting.svg import svg_of
pathlib.Path("costs.svg").write_bytes(svg_of(plotting.cost_map(found)))
"""


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    """Its figure too, by the texts in it: costs.svg, beside page.py, is the one to record."""
    blocks = read_blocks(ROOT / "docs/start/which-format-for-which-layer.md")
    shown = [text.code for code, text in pairwise(blocks) if (code.language, text.language) == ("python", "text")]
    script = tmp_path / "page.py"
    script.write_text("\n".join(block.code for block in blocks if block.language == "python") + DRAW)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert len(shown) == 4 and done.stdout == "".join(shown), done.stdout
    assert TEXTS.findall((tmp_path / "costs.svg").read_text()) == TEXTS.findall(FIGURE.read_text())
