"""Weight decay that the format of stored weights loses, counted apart from updates, beside PyTorch's own BF16."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import Emulation, emulate

pytestmark = pytest.mark.torch
STORED = {"weight": "bf16", "activation": "bf16", "master_weight": "bf16"}


def weights() -> torch.Tensor:
    """Log-uniform, in BF16."""
    return (2 ** torch.linspace(-3, 0, 24001)[:-1]).bfloat16().float()


def trained(decay: float, native: bool, policy: dict[str, str] | str) -> Emulation:
    model = nn.Linear(24000, 1, bias=False)
    model.weight.data.copy_(weights()[None])
    if native:
        model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, weight_decay=decay / 0.1)
    with emulate(model, policy, optimizer=optimizer) as emulated:
        model(torch.ones(1, 24000, dtype=model.weight.dtype)).sum().backward()
        optimizer.step()
    return emulated


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("decay", [1e-5, 0.002344, 0.003516, 0.0059])
def test_lost_decays_are_those_of_bfloat16(native: bool, decay: float) -> None:
    found = trained(decay, native, "fp32" if native else STORED)
    stored = weights().bfloat16()
    lost = (stored.float() * (1 - decay)).bfloat16() == stored
    assert abs(found.lost_weight_decay - float(lost.double().mean())) < 1e-12
    closed = {1e-5: 1.0, 0.002344: 0.737, 0.003516: 0.152, 0.0059: 0.0}[decay]
    assert abs(found.lost_weight_decay - closed) < 0.02


def test_updates_are_counted_without_them() -> None:
    assert trained(1e-5, False, STORED).lost_updates < 0.01


def test_fp32_weights_lose_none() -> None:
    assert trained(1e-5, False, "bf16").lost_weight_decay == 0
