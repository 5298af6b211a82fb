"""`python -m halfscope check script.py:make`: its exit status, its JSON, and one line for bad input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

from recording.source_tree import ROOT

pytestmark = pytest.mark.torch
SCRIPT = """import torch

torch.manual_seed(0)
model, inputs = torch.nn.Linear(4, 4), torch.randn(8, 4)
print("loading")


def right():
    return model, lambda: model(inputs).square().mean(), torch.optim.SGD(model.parameters(), lr=0.1)


def make():
    return [model, lambda: (model(inputs) * 1e5).square().mean().log()]


def nothing():
    return None


def sparse():
    table = torch.nn.Embedding(4, 2, sparse=True)
    return table, lambda: table(torch.tensor([1])).square().mean()


def transformed():
    return model, lambda: torch.func.vmap(lambda row: model(row).sum())(inputs).square().mean()


def one():
    return (model,)


def failing():
    raise RuntimeError("no data\\nin this folder")


value = 3

if __name__ == "__main__":
    raise SystemExit("trains for hours")
"""


def command(*arguments: str) -> subprocess.CompletedProcess:
    paths = {"PYTHONPATH": str(ROOT / "lib" / "python")}
    return subprocess.run(
        [sys.executable, "-m", "halfscope", "check", *arguments], capture_output=True, text=True,
        env={**os.environ, **paths},
    )  # fmt: skip


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scripts") / "train.py"
    path.write_text(SCRIPT)
    return path


def test_a_step_that_is_right_ends_with_0(script: Path) -> None:
    done = command(f"{script}:right", "--format", "autocast")
    assert done.returncode == 0 and done.stdout.startswith("Nothing to change: "), done
    assert "loading" in done.stderr and "loading" not in done.stdout


def test_a_step_to_change_ends_with_1_and_its_json_has_the_line(script: Path) -> None:
    text, told = command(str(script)), command(f"{script}:make", "--json")
    assert text.returncode == told.returncode == 1
    assert text.stdout.startswith("train.py:13: ")
    report = json.loads(told.stdout)
    assert text.stdout.split()[: len(report["verdict"].split())] == report["verdict"].split()
    assert report["findings"][0]["file"] == str(script)
    assert (report["report"], report["findings"][0]["line"]) == ("check", 13)


def test_a_step_with_sparse_gradients_is_looked_at(script: Path) -> None:
    done = command(f"{script}:sparse", "--format", "autocast")
    assert done.returncode == 0, done.stdout


def test_a_step_that_cannot_be_looked_at_ends_with_3(script: Path) -> None:
    done = command(f"{script}:transformed")
    assert done.returncode == 3 and done.stdout.startswith("Not known: "), done.stdout
    assert "a step within torch.func's vmap, grad or jvp" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["SCRIPT:nothing"], "SCRIPT: nothing() returns a value of type NoneType; give SCRIPT.py:FUNCTION, whose"),
        (["SCRIPT:one"], "SCRIPT: one() returns 1 value; give"),
        (["SCRIPT:failing"], "train.py:34: RuntimeError: no data in this folder"),
        (["SCRIPT:absent"], "SCRIPT: it has no function absent; give"),
        (["SCRIPT:value"], "SCRIPT: it has no function value; give"),
        (["absent.py"], "absent.py: no such file; give"),
        (["SCRIPT", "--format", "fp17"], "train.py:make: format='fp17': unknown format 'fp17'"),
        (["SCRIPT", "--frmat", "fp16"], "unrecognized arguments: --frmat fp16; give"),
        ([], "the following arguments are required"),
        (["BROKEN"], "broken.py:1: SyntaxError: "),
        (["RAISING"], "raising.py:2: ZeroDivisionError: division by zero"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments: list[str], words: str, script: Path) -> None:
    (script.parent / "broken.py").write_text("def make(:\n")
    (script.parent / "raising.py").write_text("x = 0\nx = 1 / x\n")
    files = {"SCRIPT": script, "BROKEN": script.parent / "broken.py", "RAISING": script.parent / "raising.py"}

    def filled(text: str) -> str:
        for name, path in files.items():
            text = text.replace(name, str(path), 1) if text.startswith(name) else text
        return text

    done = command(*map(filled, arguments))
    lines = [line for line in done.stderr.splitlines() if line != "loading"]
    assert (done.returncode, done.stdout, len(lines)) == (2, "", 1)
    assert lines[0].startswith(f"halfscope check: {filled(words)}")
