"""Finiteness of generated tensors together, against `isfinite().all()` of each."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from halfscope.torch.device.finiteness import are_finite

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.complex64)
LAYOUTS = {
    "plain": lambda x: x, "transposed": lambda x: x.mT, "strided": lambda x: x[::2], "column": lambda x: x[:, 1:2],
    "flipped": lambda x: x.flip(0), "expanded": lambda x: x[:1].expand(3, -1), "empty": lambda x: x[:0],
    "scalar": lambda x: x[0, 0], "channels_last": lambda x: x[None, :, None].to(memory_format=torch.channels_last),
    "negated": lambda x: x.conj() if x.is_complex() else torch._neg_view(x),
}  # fmt: skip


def drawn(draw: random.Random, is_spoiled: bool) -> torch.Tensor:
    """A tensor of some type and layout with huge numbers; spoiled: an element of its memory is infinite or NaN."""
    dtype, layout = draw.choice(TYPES), draw.choice(list(LAYOUTS))
    limits = torch.finfo(torch.float32 if dtype.is_complex else dtype)
    x = torch.randn(draw.randrange(1, 40), draw.randrange(2, 60)).to(dtype)
    for value in (limits.max, limits.min, limits.tiny):
        x[draw.randrange(x.shape[0]), draw.randrange(x.shape[1])] = value
        x[draw.randrange(x.shape[0])] = value
    if is_spoiled:
        value = draw.choice([float("inf"), float("-inf"), float("nan")])
        place = draw.randrange(x.shape[0]), draw.randrange(x.shape[1])
        x[place] = complex(0, value) if dtype.is_complex else value
    return LAYOUTS[layout](x)


@pytest.mark.parametrize("seed", range(40))
def test_finiteness_together_is_that_of_each(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    for _ in range(25):
        tensors = [drawn(draw, False) for _ in range(draw.randrange(8))]
        assert are_finite(tensors)
        tensors.insert(draw.randrange(len(tensors) + 1), drawn(draw, True))
        assert are_finite(tensors) is all(bool(tensor.isfinite().all()) for tensor in tensors)


def test_nothing_is_finite() -> None:
    assert are_finite([])


@pytest.mark.parametrize("dtype", TYPES)
def test_one_number_of_a_large_tensor(dtype: torch.dtype) -> None:
    """Huge finite numbers, whose sum overflows, are no alarm."""
    x = torch.full((700_001,), torch.finfo(dtype).max, dtype=dtype)
    assert are_finite([x])
    for place in (0, 349_999, 700_000):
        x[place] = float("nan")
        assert not are_finite([x])
        x[place] = 1.0
