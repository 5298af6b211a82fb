"""The programs of examples/python: they run, and print what they promise."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples/python"


def output(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_choose_scale(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("halfscope._core", reason="the package is not compiled")
    printed = output("choose_scale.py", capsys)
    assert re.search(r"^fc +\d\.\d\d% +0\.00%$", printed, re.M)
    low, high = map(int, re.search(r"scales that fit: 2\^(-?\d+) to 2\^(\d+)", printed).groups())
    recommended = int(re.search(r"recommended: 2\^(\d+)", printed).group(1))
    assert low <= recommended == min(high - 3, 24)


@pytest.mark.torch
def test_watch_model(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    printed = output("watch_model.py", capsys)
    assert re.search(r"^loss after 30 steps: 0\.\d\d$", printed, re.M)
    assert "Over 7 watched steps" in printed
    assert re.search(r"^dynamic +0 +16", printed, re.M)


def test_every_example_has_a_test() -> None:
    tested = {f"{name.removeprefix('test_')}.py" for name in globals() if name.startswith("test_")}
    assert {path.name for path in EXAMPLES.glob("*.py")} <= tested
