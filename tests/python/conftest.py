"""What the Python tests share: the package on the path, and a synthetic experiment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib" / "python"))

from halfscope.results import Experiment, read_experiment  # noqa: E402
from synthetic import write_results  # noqa: E402


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Four arms of three seeds; the last arm diverges at step 300. Read only."""
    return read_experiment(write_results(tmp_path_factory.mktemp("results")))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A small results folder that a test may damage: two seeds, 40 steps."""
    write_results(tmp_path, seeds=2, steps=40)
    return tmp_path
