"""`diagnose` on steps that are infinite or NaN in FP32: the operation that makes them so, and its line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import diagnose
from near_victims import behind, random

pytestmark = pytest.mark.torch


def masked(y: torch.Tensor) -> torch.Tensor:
    return torch.softmax(y.masked_fill(torch.tensor([[True], [False]]), float("-inf")), -1)


def distances(y: torch.Tensor) -> torch.Tensor:
    return ((y[:, None] - y[None]) ** 2).sum(-1).sqrt()


def log_of_softmax(y: torch.Tensor) -> torch.Tensor:
    return torch.log(torch.softmax(1000 * y, -1))


def filled(y: torch.Tensor) -> torch.Tensor:
    return y.index_fill(0, torch.tensor([0]), float("inf")) * 0


CASES = [
    (filled, "* 0,", "`y.index_fill(0, torch.tensor([0]), float(\"inf\")) * 0` is NaN"),
    (masked, "torch.softmax(y.masked_fill", "is NaN, by a softmax of a row without a finite number"),
    (distances, ".sum(-1).sqrt()", "the gradient of `((y[:, None] - y[None]) ** 2).sum(-1).sqrt()` is infinite"),
    (log_of_softmax, "torch.log(torch.softmax", "logarithm of 0"),
]  # fmt: skip


@pytest.mark.parametrize("policy", ["fp16", "fp16_mixed"])
@pytest.mark.parametrize(("function", "code", "why"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_the_operation_and_its_line_are_named(function: Callable, code: str, why: str, policy: str) -> None:
    model, step, _ = behind(function, random(2, 8))
    first = diagnose(model, step, policy).findings[0]
    assert code.strip(",") in first.code
    assert first.change == "look at this line and at the batch first: no format is to blame"
    assert first.why.startswith("in FP32 too ") and why in first.why


def test_attention_over_padding_alone_is_named() -> None:
    torch.manual_seed(0)
    model, padding = nn.MultiheadAttention(8, 2, batch_first=True), torch.tensor([[True] * 3, [False] * 3])
    x = random(2, 3, 8)
    first = diagnose(model, lambda: model(x, x, x, key_padding_mask=padding)[0].sum()).findings[0]
    assert "of MultiheadAttention is NaN, by a softmax of a row without a finite number" in first.why
