"""Remedies beside casts that a script makes itself: typed, their types meet as PyTorch wants them."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from cast_faults import CASTS as CAST_FAULTS
from halfscope.torch import diagnose
from halfscope.torch.doctor.mixed_types import takes_two_types
from halfscope.torch.doctor.typing_edits import typed
from planted_faults import planted
from typed_remedies import distance, is_near, judge, load, outcome

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


@pytest.mark.parametrize("own", [torch.float32, torch.float16])
@pytest.mark.parametrize("kind", CAST_FAULTS)
def test_no_remedy_drops_a_cast_in_front_of_weights_of_16_bits(kind: str, own: torch.dtype, tmp_path: Path) -> None:
    for seed in range(3):
        judged = judge(planted(seed, kind, CAST_FAULTS), tmp_path, own=own)
        assert judged.works and not judged.is_wrong, f"{judged.why}\n{judged.report}"


SQUARE, ROW = (4, 4), (4,)
SHAPES = {
    "linear": (SQUARE, SQUARE), "matmul": (SQUARE, SQUARE), "mv": (SQUARE, ROW), "dot": (ROW, ROW),
    "conv1d": ((1, 4, 4), (4, 4, 1)), "bilinear": (SQUARE, SQUARE, (4, 4, 4)), "prelu": (SQUARE, ROW),
    "scaled_dot_product_attention": (SQUARE, SQUARE, SQUARE), "add": (SQUARE, SQUARE), "mse_loss": (SQUARE, SQUARE),
    "outer": (ROW, ROW), "minimum": (SQUARE, SQUARE),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("wide", [0, 1])
def test_calls_of_one_type_are_those_that_pytorch_refuses(name: str, wide: int) -> None:
    function = getattr(torch.nn.functional, name, None) or getattr(torch, name)
    operands = [torch.full(shape, float(place == wide)) for place, shape in enumerate(SHAPES[name])]
    of_types = [each.to(torch.float32 if place == wide else torch.float16) for place, each in enumerate(operands)]
    try:
        function(*of_types)
    except RuntimeError:
        is_refused = True
    else:
        is_refused = False
    assert takes_two_types(name, tuple(operands), {}, lambda operand: bool(operand.all())) is is_refused
