"""Emulated trainings of models that fully_shard has sharded, beside the same arithmetic by hand in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        not torch.distributed.is_available() or tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6),
        reason="fully_shard came with PyTorch 2.6",
    ),
]

from rank_processes import run_ranks

FP16 = {
    1: "",
    2: " The gradients of 2 ranks were divided by 2, reduce-scattered in FP16, and their sum was rounded once.",
    3: " The gradients of 3 ranks were divided by 2, reduce-scattered in FP16, and their sum was rounded once and "
    "divided by 1.5; NCCL's ring would round at each of 2 hops.",
}


@pytest.mark.parametrize("size", FP16)
def test_shards_have_the_bits_and_counts_of_whole_tensors(size: int, tmp_path: Path) -> None:
    printed = run_ranks("sharded_ranks.py", "equals hand-made", tmp_path, size)[0]
    verdicts = dict(line.split(": ", 1) for line in printed.splitlines())
    assert verdicts["fp16_mixed"].endswith(f"Nothing overflowed.{FP16[size]}")
    if size == 2:
        assert verdicts["bf16"].endswith("divided by 2, reduce-scattered in BF16, and their sum was rounded once.")
        assert verdicts["reduced in fp32"].endswith("The gradients of 2 ranks were reduce-scattered in FP32.")


def test_fp32_changes_no_bit(tmp_path: Path) -> None:
    run_ranks("sharded_uses.py", "fp32", tmp_path)


def test_after_the_block_everything_is_as_before(tmp_path: Path) -> None:
    run_ranks("sharded_uses.py", "leaves", tmp_path)


def test_modules_may_compute_in_sixteen_bits(tmp_path: Path) -> None:
    first, _ = run_ranks("sharded_uses.py", "sixteen bits", tmp_path)
    for line, format in zip(first.splitlines(), ("BF16", "FP16")):
        assert f"activations ({format})" in line and line.endswith("2 ranks were reduce-scattered in FP32.")


def test_weights_that_another_rank_changes_are_rounded_anew(tmp_path: Path) -> None:
    run_ranks("sharded_uses.py", "changed elsewhere", tmp_path)


def test_bisection_finds_the_layer_and_all_ranks_must_accept(tmp_path: Path) -> None:
    for printed in run_ranks("sharded_uses.py", "bisect", tmp_path):
        assert printed.startswith("Keep layers.3 in FP32: emulate(..., exceptions={'layers.3': 'fp32'}).\n")
        assert "\nHow sure: 6 trainings from the same start; it cannot be left out" in printed


REFUSED = """\
emulate: the model is FullyShardedDataParallel (FSDP1), whose flat parameters hide the weights; \
shard it with fully_shard (FSDP2)
emulate: parameter 'weight' is replicated, of tensor parallelism or a tensor subclass beside fully_shard; \
give fully_shard plain parameters and a mesh of one axis
emulate: parameter 'weight' is replicated, of tensor parallelism or a tensor subclass beside fully_shard; \
give fully_shard plain parameters and a mesh of one axis
emulate: parameters '0.weight' and '1.weight' are sharded over different meshes; give fully_shard one mesh
emulate: parameter 'weight' is a DTensor that is not of fully_shard on a module of this model; \
only fully_shard is followed
probe_scales: the model is sharded by fully_shard; probe it before that, on one process
"""


def test_other_sharding_is_refused_in_one_line(tmp_path: Path) -> None:
    assert run_ranks("sharded_uses.py", "refused", tmp_path) == [REFUSED] * 2
