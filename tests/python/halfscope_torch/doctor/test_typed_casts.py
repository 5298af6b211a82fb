"""A region in FP32 whose calls ask for 16 bits themselves: typed, they ask for float32."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from halfscope.torch import diagnose
from halfscope.torch.doctor.typing_edits import typed
from typed_remedies import distance, is_near, load, outcome

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
SOURCE = """
import torch

torch.manual_seed({seed})
net = torch.nn.Linear(8, 8)
inputs = torch.randn(6, 8)


def loss(net, inputs):
    h = net(inputs)
    rows = torch.arange(6)[:, None] + {first}
    at = {cast}
    return (h * torch.sin(at * 0.7) - 1).square().mean()
"""
CASTS = (
    "rows.half()", "rows.to(torch.float16)", "rows.to(dtype=h.dtype)", "rows.to(h.device, h.dtype)",
    "rows.type(h.dtype)", "rows.type_as(h)", "rows.to(h)", "torch.arange({first}, {first} + 6, dtype=h.dtype)[:, None]",
    "torch.linspace({first}, {first} + 5, 6, dtype=torch.float16)[:, None]",
    "torch.full((6, 1), {first}, dtype=h.dtype) + torch.arange(6, dtype=h.dtype)[:, None]",
    "torch.tensor([[{first} + i] for i in range(6)], dtype=h.dtype)",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("cast", CASTS)
def test_a_cast_within_the_lines_in_fp32_is_typed(cast: str, seed: int, tmp_path: Path) -> None:
    first = 3001 + 4000 * seed
    exact, spoiled, changed = (tmp_path / f"{name}.py" for name in ("exact", "spoiled", "changed"))
    exact.write_text(SOURCE.format(seed=seed, first=first, cast="rows.float()"))
    spoiled.write_text(SOURCE.format(seed=seed, first=first, cast=cast.format(first=first)))
    module = load(spoiled)
    report = diagnose(module.net, lambda: module.loss(module.net, module.inputs))
    edits = [edit for advice in report.findings for edit in advice.edits]
    assert edits, report
    changed.write_text(typed(spoiled.read_text(), edits))
    right = outcome(load(exact), torch.float32)
    assert not is_near(distance(outcome(load(spoiled), torch.float16), right))
    assert is_near(distance(outcome(load(changed), torch.float16), right)), changed.read_text()


NORMED = """
import torch

torch.manual_seed({seed})


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.gate, self.up, self.down = (torch.nn.Linear(16, 16) for _ in range(4))
        self.weight = torch.nn.Parameter(torch.full((16,), 100.0))

    def norm(self, x):
        kind = x.dtype
        x = x.float()
        return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)).to(kind)

    def forward(self, x):
        x = x + self.first(x)
        y = self.norm(x)
        return x + self.down(self.gate(y) * (20 * self.up(y))) / 1000


net = Block()
inputs = torch.randn(6, 16)


def loss(net, inputs):
    return net(inputs).float().square().mean()
"""


@pytest.mark.parametrize("seed", range(2))
def test_a_tensor_in_fp32_for_a_trial_says_the_type_of_the_format(seed: int, tmp_path: Path) -> None:
    """Else a norm that asks for it would keep all that follows in FP32, where PyTorch refuses weights of 16 bits."""
    source = tmp_path / "normed.py"
    source.write_text(NORMED.format(seed=seed))
    module = load(source)
    found = diagnose(module.net, lambda: module.loss(module.net, module.inputs))
    first = found.findings[0]
    assert "self.gate(y) * (20 * self.up(y))" in first.code, str(found)
    assert "overflows" in first.why and "x + self.first(x)" not in first.change
