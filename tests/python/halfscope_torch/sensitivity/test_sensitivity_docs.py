"""The pages on formats of layers show what their code prints."""

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
PAGES = ("docs/guides/formats-in-training.md", "docs/guides/weights-that-fit-fp16.md")
DRAWN = ("sensitivity_cost_map.svg", "sensitivity_channel_costs.svg")
DRAW = f"""
import pathlib
from halfscope.plotting.svg import svg_of
for name, figure in zip({DRAWN}, (plotting.cost_map(found), plotting.channel_costs(channels))):
    pathlib.Path(name).write_bytes(svg_of(figure))
"""


def check_output(page: str, folder: Path, more: str = "") -> int:
    """The number of blocks of output, all of which a page's code prints. more: code behind the page's."""
    blocks = read_blocks(ROOT / page)
    shown = [text.code for code, text in pairwise(blocks) if (code.language, text.language) == ("python", "text")]
    script = folder / "page.py"
    script.write_text("\n".join(block.code for block in blocks if block.language == "python") + more)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=folder)
    assert done.stdout == "".join(shown), done.stdout
    return len(shown)


@pytest.mark.parametrize("page", PAGES)
def test_pages_show_the_output_of_their_code(page: str, tmp_path: Path) -> None:
    assert check_output(page, tmp_path) >= 1


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    """Its figures too, by the texts in them: those beside page.py are the ones to record."""
    assert check_output("docs/start/which-format-for-which-layer.md", tmp_path, DRAW) == 3
    for name in DRAWN:
        assert TEXTS.findall((tmp_path / name).read_text()) == TEXTS.findall((FIGURES / name).read_text())
