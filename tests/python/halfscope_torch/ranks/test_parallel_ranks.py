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


def test_lint_reads_the_elements_of_each_rank(tmp_path: Path) -> None:
    about = "Looked at: 4 modules and 0 buffers, of sharded weights this rank's elements, for BF16; no step was made.\n"
    assert run_ranks("parallel_ranks.py", "lint", tmp_path) == [about * 3] * 2


REFUSED = """\
check: '0.weight' is a DTensor, of which this rank has a part; check the model in one process before it is sharded, \
or watch it
check: '0.weight' is a DTensor, of which this rank has a part; check the model in one process before it is sharded, \
or watch it
diagnose: parameter '0.weight' is a DTensor that is not of fully_shard on a module of this model; \
only fully_shard is followed
sensitivity: parameter '0.weight' is a DTensor that is not of fully_shard on a module of this model; \
only fully_shard is followed
emulate: parameter '0.weight' is a DTensor that is not of fully_shard on a module of this model; \
only fully_shard is followed
"""


def test_other_doors_refuse_dtensors_in_one_line(tmp_path: Path) -> None:
    assert run_ranks("parallel_ranks.py", "refused", tmp_path) == [REFUSED] * 2


def test_stages_of_a_pipeline_are_emulated_as_one_model_is(tmp_path: Path) -> None:
    run_ranks("parallel_ranks.py", "stages", tmp_path)


def test_the_search_refuses_a_pipeline_in_one_line(tmp_path: Path) -> None:
    refused = (
        "the step sends tensors from one rank to another, as a pipeline does, and the search runs it another number "
        "of times on each; give it the whole model in one process\n"
    )
    assert run_ranks("parallel_ranks.py", "refused stages", tmp_path) == [refused] * 2


def test_captured_shards_are_gathered(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    run_ranks("parallel_ranks.py", "capture", tmp_path)
    assert {path.name for path in tmp_path.glob("*.safetensors")} == {
        "whole0.safetensors", "whole1.safetensors", "parallel.safetensors", "block.safetensors",
        "replicated.safetensors", "sharded.safetensors",
    }  # fmt: skip
