"""Types of public functions, as mypy finds them. Skipped without mypy or the stub; tools/test --tidy makes both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recording.source_tree import ROOT

CALLS = ROOT / "tests/python/typed_calls.py"
STUB = ROOT / "build/types/halfscope/_core.pyi"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("types")


def run_mypy(file: Path, cache: Path) -> str:
    pytest.importorskip("mypy", reason="mypy is not installed; tools/test --tidy installs it")
    if not STUB.exists():
        pytest.skip(f"{STUB} does not exist; tools/test --tidy writes it")
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", cache, "--follow-imports", "silent", file],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    return found.stdout


def test_results_have_the_type_of_the_callers_library(cache: Path) -> None:
    assert run_mypy(CALLS, cache).startswith("Success")


def test_another_type_is_an_error(tmp_path: Path, cache: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(CALLS.read_text().replace('"fp16"), "NDArray[np.float32]"', '"fp16"), "NDArray[np.float64]"'))
    assert run_mypy(wrong, cache).count("error: Expression is of type") == 1
