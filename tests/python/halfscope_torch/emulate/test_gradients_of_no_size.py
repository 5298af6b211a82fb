"""Advice on the loss scale leaves out gradients that exact arithmetic has at zero, and no others."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope import ScaleAdvice
from halfscope.torch import Watch, emulate, watch

pytestmark = pytest.mark.torch


class Attention(nn.Module):
    """One head; the gradient of the key's bias is zero: it adds the same to all scores of a row."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.query(x) @ self.key(x).transpose(-1, -2)
        return torch.softmax(scores, -1) @ self.value(x)


def advice(slope: float = 0.0) -> tuple[Watch, ScaleAdvice]:
    """slope: of the loss in the elements of the key's bias."""
    torch.manual_seed(0)
    model, x = Attention(), torch.randn(8, 12, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer) as watched:
        loss = model(x).square().mean() + slope * model.key.bias.sum()
        loss.backward()
        optimizer.step()
    return watched, watched.advise_scale()


def test_a_bias_before_a_softmax_asks_for_no_scale() -> None:
    watched, found = advice()
    bias, weight = (watched.histograms("weight_gradient")[f"key.{name}"] for name in ("bias", "weight"))
    assert bias.window()[0] > weight.window()[0] + 10  # alone it would ask for a scale a thousand times as large
    assert "key.bias" not in found.verdict
    assert found.enough_from_log2 is not None and found.enough_from_log2 < bias.window()[0]


def test_a_small_gradient_does() -> None:
    watched, found = advice(1e-6)
    (asked, _) = watched.histograms("weight_gradient")["key.bias"].window()
    without = advice()[1].enough_from_log2
    assert without is not None and found.enough_from_log2 == asked > without


def test_an_emulation_advises_without_them_too() -> None:
    """In FP16 that gradient is rounding errors of FP16's size: the compared step knows FP32's."""
    torch.manual_seed(0)
    model, x = Attention(), torch.randn(8, 12, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    asked = []
    for compare_steps in ((1,), ()):
        with emulate(model, "fp16_mixed", optimizer=optimizer, compare_steps=compare_steps) as emulated:
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        found = emulated.advise_scale()
        assert ("key.bias" in found.verdict) == (compare_steps == ())
        asked.append(found.enough_from_log2)
    assert asked[0] < asked[1]
