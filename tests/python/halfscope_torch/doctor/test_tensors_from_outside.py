"""Tensors that are neither the model's nor an optimizer's: what a step reads of them is no change of state."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from halfscope.formats import Format
from halfscope.torch import diagnose
from halfscope.torch.doctor.program import Program, Trial

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


def drawn(seed: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """A network, inputs, and a tensor that may be below FP16's smallest normal number."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    width = draw.randint(2, 9)
    layers = [part for _ in range(draw.randint(1, 3)) for part in (nn.Linear(width, width), nn.Tanh())]
    outside = torch.randn(5, width) * 2.0 ** draw.randint(-22, 0)
    return nn.Sequential(*layers), torch.randn(5, width) * 2.0 ** draw.randint(-18, 2), outside


@pytest.mark.parametrize("seed", range(60))
def test_a_run_reads_them_and_changes_none(seed: int) -> None:
    draw = random.Random(seed)
    model, x, outside = drawn(seed)
    before = outside.clone()
    program = Program(model, lambda: (model(x) * outside).sum(), [], Format.of(draw.choice(["fp16", "bf16"])))
    for is_exact in (True, False):
        trial = Trial(is_exact=is_exact, shrinks=draw.randint(0, 1), noise=draw.choice([0.0, 2.0**-11]) * is_exact)
        assert program.run(trial).outcome.changes == {}, trial
    assert torch.equal(outside, before)


@pytest.mark.parametrize("seed", range(12))
def test_a_step_that_overflows_beside_small_ones_has_a_remedy(seed: int) -> None:
    """The remedy is tried again on smaller inputs, whose rounded differences are no change of state."""
    model, x, _ = drawn(seed)
    small = torch.randn(5, x.shape[1]) * 2.0**-22
    report = diagnose(model, lambda: ((model(x) + 300).square() / 256 * small * 2.0**12).sum(), scale=2.0**10)
    assert report.findings and all(advice.kind for advice in report.findings), report
