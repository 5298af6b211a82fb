"""Two processes that share a model by tensor or pipeline parallelism: no door ends their training."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch without torch.distributed"),
]

from rank_processes import run_ranks


def test_watch_counts_layers_of_dtensors_and_says_that_operations_are_not_looked_at(tmp_path: Path) -> None:
    run_ranks("parallel_ranks.py", "watch", tmp_path)
