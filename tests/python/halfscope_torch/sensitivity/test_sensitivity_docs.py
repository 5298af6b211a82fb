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
FIGURES = ROOT / "notebooks/figures"
DRAWN = ("sensitivity_cost_map.svg", "sensitivity_channel_costs.svg")
DRAW = f"""
import pathlib
from halfscope.plotting.svg import svg_of
for name, figure in zip({DRAWN}, (plotting.cost_map(found), plotting.channel_costs(channels))):
    pathlib.Path(name).write_bytes(svg_of(figure))
"""


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    """Its figures too, by the texts in them: those beside page.py are the ones to record."""
    blocks = read_blocks(ROOT / "docs/start/which-format-for-which-layer.md")
    shown = [text.code for code, text in pairwise(blocks) if (code.language, text.language) == ("python", "text")]
    script = tmp_path / "page.py"
    script.write_text("\n".join(block.code for block in blocks if block.language == "python") + DRAW)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert len(shown) == 5 and done.stdout == "".join(shown), done.stdout
    for name in DRAWN:
        assert TEXTS.findall((tmp_path / name).read_text()) == TEXTS.findall((FIGURES / name).read_text())
