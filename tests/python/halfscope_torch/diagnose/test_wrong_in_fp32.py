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
    (filled, "index_fill", "look at mul in FP32 first", "mul is NaN"),
    (masked, "torch.softmax(y.masked_fill", "leave out rows whose keys are all masked",
     "softmax of a row without a finite number is NaN"),
    (distances, ".sum(-1).sqrt()", "add an eps in front of the root, sqrt(x + 1e-6)",
     "the gradient of sqrt is infinite, though its operands are finite; pow makes it NaN"),
    (log_of_softmax, "torch.log(torch.softmax", "keep the argument of the logarithm above 0",
     "log is infinite, though its operands are finite"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "code", "change", "why"), CASES, ids=lambda value: getattr(value, "__name__", ""))
def test_the_operation_and_its_line_are_named(function: Callable, code: str, change: str, why: str) -> None:
    model, step, _ = behind(function, random(2, 8))
    first = diagnose(model, step).findings[0]
    assert code in first.code
    assert change in first.change and first.change.endswith("; no format is to blame")
    assert why in first.why


def test_attention_over_padding_alone_is_named() -> None:
    torch.manual_seed(0)
    model, padding = nn.MultiheadAttention(8, 2, batch_first=True), torch.tensor([[True] * 3, [False] * 3])
    x = random(2, 3, 8)
    first = diagnose(model, lambda: model(x, x, x, key_padding_mask=padding)[0].sum()).findings[0]
    assert "leave out rows whose keys are all masked" in str(first)
