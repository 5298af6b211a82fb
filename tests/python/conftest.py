"""Fixtures of all Python tests: the package, the tools and the peers on the path, and synthetic experiments."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lib" / "python"), str(ROOT / "tools"), str(ROOT / "tests" / "peer")]
# Models and cases that tests of several rooms of halfscope.torch share.
sys.path += [
    str(Path(__file__).parent / "halfscope_torch" / folder) for folder in ("models", "cases", "ranks", "doctor")
]

from halfscope.results import Experiment, read_experiment
from synthetic import write_results
from synthetic_scales import SWEEP, predictions, write_scale_results


@pytest.fixture(scope="session")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Four arms of three seeds; the last arm diverges at step 300. Read only."""
    return read_experiment(write_results(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="session")
def detection(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """FP32, four static loss scales with predictions, and dynamic scaling. Read only."""
    lines = predictions(("fp16_s8", 8.0), ("fp16_s1", 1.0), ("fp16_s64", 64.0), ("fp16_s1024", 1024.0))
    return read_experiment(write_scale_results(tmp_path_factory.mktemp("detection"), predictions=lines))


@pytest.fixture(scope="session")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """FP32, 29 static loss scales of which those from 2^16 on diverge, dynamic scaling, skipping. Read only."""
    words = {"experiment": "scale-sweep", "metric": "test accuracy", "unit": "%"}
    return read_experiment(write_scale_results(tmp_path_factory.mktemp("sweep"), SWEEP, seeds=1, **words))


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """PyTorch's threads spin beside those of other tests."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A small results folder that a test may damage: two seeds, 40 steps."""
    write_results(tmp_path, seeds=2, steps=40)
    return tmp_path
