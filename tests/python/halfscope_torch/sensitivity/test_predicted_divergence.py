"""Predicted nats beside the true KL of generated networks, each unit alone in a format by `emulate`."""

from __future__ import annotations

import math
from statistics import fmean, median

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import emulate, sensitivity
from scored_networks import random_network

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
FORMATS = ("mxfp4", "nvfp4", "mxfp8_e4m3")
QUADRATIC = 0.1  # nats, up to which the second order holds


def divergence(model: nn.Module, batches: list[Tensor], unit: str, format: str) -> float:
    """KL from FP32 per input, by another engine and in float64."""
    inputs = torch.cat(batches)
    with torch.no_grad():
        reference = model(inputs).double().log_softmax(-1)
        rules = {unit: {"operands": f"forward={format}"}}
        with emulate(model, "fp32", exceptions=rules, order="fp32_fused"):
            found = torch.cat([model(batch) for batch in batches]).double().log_softmax(-1)
    return float((reference.exp() * (reference - found)).sum(-1).mean())


def rank_correlation(pairs: list[tuple[float, float]]) -> float:
    def ranks(values: list[float]) -> Tensor:
        return torch.tensor(values).argsort().argsort().double()

    return float(torch.corrcoef(torch.stack([ranks(list(each)) for each in zip(*pairs)]))[0, 1])


def compared(seed: int) -> list[tuple[float, float]]:
    """Predicted and true nats of each unit and format."""
    model, batches = random_network(seed)
    found = sensitivity(model, batches, FORMATS, groups=[], seed=seed)
    return [(score.nats, divergence(model, batches, unit, format)) for (unit, format), score in found.scores.items()]


def check(networks: int) -> None:
    ratios, ranks = [], []
    for seed in range(networks):
        pairs = [pair for pair in compared(seed) if 1e-9 < pair[1] < QUADRATIC]
        ratios += [math.log2(predicted / true) for predicted, true in pairs]
        ranks += [rank_correlation(pairs)] if len(pairs) >= 6 else []
    ratios.sort()
    tail = len(ratios) // 20
    assert len(ranks) >= networks / 4
    assert abs(median(ratios)) < 0.1, median(ratios)
    assert ratios[tail] > -1 and ratios[-1 - tail] < 1, (ratios[tail], ratios[-1 - tail])
    assert fmean(ranks) > 0.95 and median(ranks) > 0.97, (fmean(ranks), median(ranks))


def test_thirty_networks() -> None:
    check(30)


@pytest.mark.slow
def test_three_hundred_networks() -> None:
    check(300)
