"""Recipes on two ranks beside one process with the whole batch: operands, and the scales of the next step."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from halfscope.torch.emulation.nodes import numbers_nodes
from rank_processes import run_ranks
from recipe_ranks import STEPS, TOKENS, trained

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch is built without distributed"),
    pytest.mark.skipif(not numbers_nodes(), reason="PyTorch 1.13 does not number the nodes of its graph"),
]

Found = dict[str, "torch.Tensor"]


def beside(recipe: str, folder: Path) -> tuple[Found, list[Found]]:
    """One process's training, and those of two ranks with half of its tokens each."""
    run_ranks("recipe_ranks.py", recipe, folder)
    return trained(recipe), [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


def check_rows(whole: Found, ranks: list[Found], step: int) -> None:
    """Compares tensors with a row for each token."""
    for name in (f"y{step}", f"dx{step}"):
        assert torch.equal(torch.cat([rank[name] for rank in ranks]), whole[name]), name


@pytest.mark.parametrize("recipe", ["mxfp8", "mxfp6", "bf16_mixed"])
def test_blocks_of_a_ranks_tokens_are_those_of_the_batch(recipe: str, tmp_path: Path) -> None:
    """Each rank quantizes its own operands, 32 tokens to a block, and its product is reduced in BF16."""
    assert TOKENS // 2 == 32
    whole, ranks = beside(recipe, tmp_path)
    for step in range(STEPS):
        check_rows(whole, ranks, step)
        for rank in ranks:
            assert torch.equal(rank[f"dw{step}"], whole[f"dw{step}"])
    assert whole["y0"].abs().max() > 1


def test_delayed_scales_come_from_the_largest_magnitude_of_all_ranks(tmp_path: Path) -> None:
    whole, ranks = beside("fp8_delayed", tmp_path)
    for step in range(STEPS):
        check_rows(whole, ranks, step)
        for rank in ranks:
            assert torch.equal(rank[f"scales{step}"], whole[f"scales{step}"])
    # The first rank's inputs stay at 2, which alone would give 448 / 2; the second rank's reach 8.
    assert 448 / 8 in ranks[0]["scales2"].tolist()


def test_a_scale_of_the_operands_own_is_each_ranks(tmp_path: Path) -> None:
    """As TransformerEngine's without a group of its own: the largest magnitude before it is quantized is the rank's."""
    whole, ranks = beside("fp8_current", tmp_path)
    check_rows(whole, ranks, 0)  # both halves reach 2
    assert all(float(scale) == 1 for rank in ranks for scale in rank["scales2"])
