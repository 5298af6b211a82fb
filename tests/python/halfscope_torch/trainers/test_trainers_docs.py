"""The page on trainers shows what its code prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

for package in ("torch", "transformers", "accelerate"):
    pytest.importorskip(package, reason=f"{package} is not installed")

from doc_blocks import read_blocks
from recording.source_tree import ROOT

pytestmark = pytest.mark.torch


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    code, text = read_blocks(ROOT / "docs/guides/trainers.md")
    (tmp_path / "train.py").write_text(code.code)
    run = [sys.executable, "train.py"]
    printed = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    ours = printed[printed.index("halfscope:") :]
    assert ours.startswith(text.code.removesuffix("...\n"))
