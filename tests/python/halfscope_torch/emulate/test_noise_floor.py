"""The floor of a compared step: round-off is within it, other sums and one-sided casts are not."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import emulate
from halfscope.torch.emulate.twins.comparison import Comparison

pytestmark = pytest.mark.torch
SEEDS = range(5)


def smooth() -> nn.Module:
    """Without a ReLU, whose sign a rounding may switch."""
    return nn.Sequential(
        nn.Linear(256, 64), nn.Tanh(), nn.LayerNorm(64), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)
    )


class Shift(nn.Module):
    """One cast, that of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.one


def compared(policy: str, seed: int, floor: bool = True, **options: Any) -> Comparison:
    torch.manual_seed(seed)
    model, x = smooth(), torch.randn(32, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with emulate(model, policy, optimizer=optimizer, floor=floor, **options) as emulated:
        (model(x).square().mean() * 64).backward()
        optimizer.step()
    return emulated.compare_to("fp32", floor=floor)


@pytest.mark.parametrize("policy", ["fp16", "bf16"])
@pytest.mark.parametrize("seed", SEEDS)
def test_round_off_is_within_its_floor(policy: str, seed: int) -> None:
    found = compared(policy, seed)
    times = sorted(row.times for row in found.ranked() if row.elements >= 32)
    assert found.beyond() == [] and 0.8 < times[len(times) // 2] < 1.25
    assert not any(cast.is_one_sided for cast in found.casts.values())
    assert "Roundings to nearest explain all of this" in str(found)


@pytest.mark.parametrize("seed", SEEDS)
def test_truncating_casts_are_found(seed: int) -> None:
    casts = compared("bf16/toward_zero", seed).casts
    inexact = {key: cast for key, cast in casts.items() if cast.numbers >= 30}
    assert len(inexact) > 15 and all(cast.is_one_sided for cast in inexact.values())
    large = [cast.mean_magnitude for cast in inexact.values() if cast.numbers > 500]
    assert large and all(abs(mean + 0.5) < 0.1 for mean in large)


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_in_fp16_are_beyond_the_floor_of_the_casts(seed: int) -> None:
    found = compared("fp16", seed, order="fp16_sequential")
    first = found.beyond()[0]
    assert (first.role, first.tensor) == ("activation", "0") and first.times > 3
    assert "activation 0: " in str(found) and "times what its roundings explain" in str(found)


@pytest.mark.parametrize("policy", ["fp16", "bf16"])
def test_the_floor_of_one_cast_is_that_of_uniform_errors(policy: str) -> None:
    """A step of 2^-10 or 2^-7 in [1, 2): its square over 12."""

    torch.manual_seed(0)
    model, x = Shift(), 1 + torch.rand(20_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, policy, optimizer=optimizer, floor=True) as emulated:
        model(x).sum().backward()
        optimizer.step()
    found = next(row for row in emulated.compare_to(floor=True).ranked() if row.role == "activation")
    step = 2.0 ** (-10 if policy == "fp16" else -7)
    expected = step / math.sqrt(12) / float(x.square().mean().sqrt())
    assert math.isclose(found.floor, expected, rel_tol=0.02) and math.isclose(found.times, 1, rel_tol=0.03)


def test_each_run_has_the_same_floor() -> None:
    assert str(compared("fp16", 0)) == str(compared("fp16", 0))


def test_refused_where_no_floor_was_computed() -> None:
    torch.manual_seed(0)
    model = smooth()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with emulate(model, "fp16", optimizer=optimizer) as emulated:
        model(torch.randn(4, 256)).sum().backward()
        optimizer.step()
    assert "floor" not in str(emulated.compare_to())
    with pytest.raises(ValueError, match=r"give emulate\(\.\.\., floor=True\)"):
        emulated.compare_to(floor=True)
