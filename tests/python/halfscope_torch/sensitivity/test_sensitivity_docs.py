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
PAGES = (
    "docs/guides/formats-in-training.md",
    "docs/guides/weights-that-fit-fp16.md",
    "docs/guides/formats-for-a-runtime.md",
)
DRAWN = ("sensitivity_cost_map.svg", "sensitivity_frontier.svg", "sensitivity_channel_costs.svg")


def shown(page: str) -> str:
    """The text that a page shows behind its code."""
    blocks = read_blocks(ROOT / page)
    texts = [text.code for code, text in pairwise(blocks) if (code.language, text.language) == ("python", "text")]
    assert texts
    return "".join(texts)


@pytest.mark.parametrize("page", PAGES)
def test_pages_show_the_output_of_their_code(page: str, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text("\n".join(block.code for block in read_blocks(ROOT / page) if block.language == "python"))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == shown(page), done.stdout


def test_the_start_page_shows_the_output_of_its_code_and_its_figures(tmp_path: Path) -> None:
    """Figures by the texts in them: those that are drawn here are the ones to record."""
    command = [sys.executable, ROOT / "tools/draw_sensitivity.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == shown("docs/start/which-format-for-which-layer.md"), done.stdout
    for name in DRAWN:
        assert TEXTS.findall((tmp_path / name).read_text()) == TEXTS.findall((FIGURES / name).read_text())
