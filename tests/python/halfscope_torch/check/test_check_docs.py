"""The pages that show a check show what their code prints."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from doc_blocks import Block, read_blocks
from recording.source_tree import ROOT

pytestmark = pytest.mark.torch


def printed(script: Path, code: str) -> str:
    script.write_text(code)
    done = subprocess.run([sys.executable, script.name], cwd=script.parent, capture_output=True, text=True, check=True)
    return done.stdout


def shown(page: str) -> list[tuple[Block, Block]]:
    """Blocks of code that print a check, with the text behind each."""
    blocks = read_blocks(ROOT / page)
    return [(code, text) for code, text in pairwise(blocks) if text.language == "text" and "check(" in code.code]


@pytest.mark.parametrize(("page", "count"), [("README.md", 1), ("docs/guides/check.md", 2)])
def test_the_page_shows_the_output_of_its_code(page: str, count: int, tmp_path: Path) -> None:
    pairs, code, before = shown(page), "", ""
    assert len(pairs) == count
    for number, (block, text) in enumerate(pairs):
        code = block.code if number == 0 else f"{code}\n{block.code}"
        output = printed(tmp_path / "train.py", code)
        assert output.removeprefix(before).startswith(text.code.rstrip()), f"{block.place}\n{output}"
        before = output
