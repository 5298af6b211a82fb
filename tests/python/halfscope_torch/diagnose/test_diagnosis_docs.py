"""The page on NaN shows the output of `diagnose` for its code, README and watch.md the reports of their trainings."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from doc_blocks import read_blocks
from recording.source_tree import ROOT

README = ROOT / "README.md"
GUIDE = ROOT / "docs/guides/watch.md"
PAGE = ROOT / "docs/start/which-layer-makes-nan.md"
pytestmark = pytest.mark.torch


def output_of(name: str, code: str, folder: Path) -> str:
    (folder / name).write_text(code)
    return subprocess.run([sys.executable, name], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_the_output_is_that_of_the_code(tmp_path: Path) -> None:
    blocks = read_blocks(PAGE)
    (code,) = (block.code for block in blocks if block.language == "python")
    assert next(block.code for block in blocks if block.language == "text") == output_of("train.py", code, tmp_path)


def test_readme_shows_the_report_of_the_guides_training(tmp_path: Path) -> None:
    """Counts of random numbers may differ between versions of PyTorch: the call to type, and the sentences, do not."""
    training = next(block.code for block in read_blocks(GUIDE) if block.needs_torch)
    (report,) = [block.code for block in read_blocks(README) if block.code.startswith("Loss scale 2^")]
    printed = output_of("train.py", training, tmp_path)
    assert printed.splitlines()[0] == report.splitlines()[0]
    assert words(printed).startswith(words(report))


def test_the_guide_shows_the_report_on_block_formats(tmp_path: Path) -> None:
    blocks = read_blocks(GUIDE)
    (training,) = (block.code for block in blocks if 'format="mxfp4"' in block.code and block.needs_torch)
    (report,) = (block.code for block in blocks if block.code.startswith("Train in MXFP4"))
    assert words(output_of("train.py", training, tmp_path)).startswith(words(report.removesuffix("...\n")))


def test_the_guide_shows_the_state_of_readmes_optimizer(tmp_path: Path) -> None:
    training = next(block.code for block in read_blocks(GUIDE) if block.needs_torch)
    counted = training.replace("optimizer=optimizer", 'optimizer=optimizer, observe_roles="optimizer_state"')
    (sentence,) = (block.code for block in read_blocks(GUIDE) if block.code.startswith("FP16 optimizer state"))
    assert words(sentence) in words(output_of("train.py", counted, tmp_path))


def words(text: str) -> str:
    """A report without its numbers and its line breaks."""
    return re.sub(r"[0-9.]+", "#", " ".join(text.split()))
