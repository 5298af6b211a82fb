"""Recipes on two ranks beside one process with the whole batch: operands, and the scales of the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from rank_processes import run_ranks
from recipe_ranks import STEPS, TOKENS, trained

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch is built without distributed"),
]

Found = dict[str, "torch.Tensor"]
WRAPPERS = [
    "ddp",
    pytest.param(
        "fsdp2",
        marks=pytest.mark.skipif(
            tuple(map(int, torch.__version__.split(".")[:2])) < (2, 6),
            reason="fully_shard came with PyTorch 2.6",
        ),
    ),
]


def beside(recipe: str, wrapper: str, folder: Path) -> tuple[Found, list[Found]]:
    """One process's training, and those of two ranks with half of its tokens each."""
    run_ranks("recipe_ranks.py", f"{wrapper}:{recipe}", folder)
    return trained(recipe), [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def check_rows(whole: Found, ranks: list[Found], step: int) -> None:
    """Compares tensors with a row for each token."""
    for name in (f"y{step}", f"dx{step}"):
        assert torch.equal(torch.cat([rank[name] for rank in ranks]), whole[name]), name


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("recipe", ["mxfp8", "mxfp6", "bf16_mixed"])
def test_blocks_of_a_ranks_tokens_are_those_of_the_batch(recipe: str, wrapper: str, tmp_path: Path) -> None:
    """Each rank quantizes its own operands, 32 tokens to a block, and its product is reduced in BF16.

    fully_shard gathers the weight first, so that it is quantized whole.
    """
    assert TOKENS // 2 == 32
    whole, ranks = beside(recipe, wrapper, tmp_path)
    for step in range(STEPS):
        check_rows(whole, ranks, step)
        for rank in ranks:
            assert torch.equal(rank[f"dw{step}"], whole[f"dw{step}"])
    assert whole["y0"].abs().max() > 1


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_delayed_scales_come_from_the_largest_magnitude_of_all_ranks(wrapper: str, tmp_path: Path) -> None:
    whole, ranks = beside("fp8_delayed", wrapper, tmp_path)
    for step in range(STEPS):
        check_rows(whole, ranks, step)
        for rank in ranks:
            assert torch.equal(rank[f"scales{step}"], whole[f"scales{step}"])
    # The first rank's inputs stay at 2, which alone would give 448 / 2; the second rank's reach 8.
    assert 448 / 8 in ranks[0]["scales2"].tolist()


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_scale_of_the_operands_own_is_each_ranks(wrapper: str, tmp_path: Path) -> None:
    """As TransformerEngine's without a group of its own: the largest magnitude before it is quantized is the rank's."""
    whole, ranks = beside("fp8_current", wrapper, tmp_path)
    check_rows(whole, ranks, 0)  # both halves reach 2
    assert all(float(scale) == 1 for rank in ranks for scale in rank["scales2"])
