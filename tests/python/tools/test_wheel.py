"""tools/wheel: its refusals, and what the proof of a wheel asks of its environment; `tools/test --all` proves one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from copied_tree import ROOT


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--python", "no-such-python"], "no interpreter 'no-such-python'"),
        (["--torch", "/no/such/python"], "no interpreter '/no/such/python'"),
        (["--out"], "--out needs a path"),
        (["--strip"], "unknown option '--strip'"),
    ],
)
def test_a_wrong_request_is_a_line_and_status_2(options: list[str], words: str) -> None:
    done = subprocess.run([ROOT / "tools/wheel", *options], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and words in done.stderr


def test_a_path_with_a_compiler_proves_nothing(tmp_path: Path) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    proof = [sys.executable, ROOT / "tools/wheel_proof.py", "halfscope-0.1.0-none-any.whl", str(tmp_path)]
    done = subprocess.run(proof, env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"wheel_proof.py: the path of a bare machine has no {compiler}\n"
