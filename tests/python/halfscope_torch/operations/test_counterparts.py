"""Counterparts lie as their tensors do, are nobody else's memory, and go when their tensors have gone."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from halfscope.torch.operations.counterparts import Counterparts

pytestmark = pytest.mark.torch


def drawn(draw: random.Random) -> torch.Tensor:
    """A tensor of any strides, with gaps or without."""
    tensor = torch.randn([draw.randint(1, 5) for _ in range(draw.randint(0, 3))])
    tensor = tensor.permute(draw.sample(range(tensor.dim()), tensor.dim()))
    if tensor.dim() and draw.random() < 0.4:
        tensor = tensor[draw.randint(0, 1) if tensor.shape[0] > 1 else 0 :: draw.randint(1, 2)]
    return tensor


@pytest.mark.parametrize("seed", range(200))
def test_a_counterpart_has_its_numbers_whatever_becomes_of_the_others(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    tensor, source = drawn(draw), torch.randn(7)
    exact = torch.randn(tensor.shape)
    if draw.random() < 0.5:
        exact = torch.empty_like(tensor).copy_(exact)  # strides of the tensor, where it has no gaps
    is_view = draw.random() < 0.3 and exact.numel() > 0
    given = exact[...] if is_view else source
    counterparts, numbers = Counterparts(), exact.clone()
    counterparts.keep(tensor, exact, [given])
    if is_view:
        given.fill_(0)  # memory of somebody else
    tensor.fill_(1)
    kept = counterparts.counterpart(tensor)
    assert kept is not None and torch.equal(kept, numbers)
    assert kept.stride() == tensor.stride()


def test_what_is_kept_goes_with_the_tensors() -> None:
    counterparts, living = Counterparts(), [torch.randn(3) for _ in range(5)]
    for tensor in living:
        counterparts.keep(tensor, tensor + 1, [tensor])
    for _ in range(2000):
        tensor = torch.randn(4)
        counterparts.keep(tensor, tensor * 2, [tensor])
    assert len(counterparts._flats) <= 200
    assert all(torch.equal(counterparts.counterpart(tensor), tensor + 1) for tensor in living)
