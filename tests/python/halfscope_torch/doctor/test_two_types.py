"""Steps that PyTorch refuses in 16 bits, since a call takes FP32 too: PyTorch's own run is the right answer."""

from __future__ import annotations

import copy
import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import check, diagnose

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
WIDTH = 8


class Chain(nn.Module):
    """Parts drawn at random; some leave FP32 behind, and some of those that follow bear it."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.kinds = [draw.choice(PARTS) for _ in range(draw.randint(2, 6))]
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in self.kinds)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in self.kinds)
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for kind, layer, norm in zip(self.kinds, self.layers, self.norms):
            if kind == "linear":
                x = layer(x)
            elif kind == "norm":
                x = norm(x)
            elif kind == "wide":
                x = torch.tanh(x.float())
            elif kind == "back":
                x = torch.tanh(x.float()).to(self.weight.dtype)
            elif kind == "matmul":
                x = x @ self.weight
            elif kind == "einsum":
                x = torch.einsum("ij,jk->ik", x, self.weight)
            elif kind == "softmax":
                x = torch.softmax(x, -1, dtype=torch.float32)
            elif kind == "product":
                x = x * self.weight[0]
            elif kind == "sum":
                x = x + torch.cat([x, x * 2])[: len(x)]
        return x


PARTS = ("linear", "norm", "wide", "back", "matmul", "einsum", "softmax", "product", "sum")


def is_refused(model: nn.Module, x: torch.Tensor) -> bool:
    """Whether PyTorch ends with an error in 16 bits."""
    try:
        copy.deepcopy(model).half()(x.half())
    except RuntimeError as error:
        assert "type" in str(error) or "dtype" in str(error), error
        return True
    return False


@pytest.mark.parametrize("seed", range(120))
def test_they_are_those_that_pytorch_refuses(seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model, x = Chain(draw), torch.randn(5, WIDTH)
    report = diagnose(model, lambda: model(x).square().mean(), quick=True)
    assert (report.types is not None) is is_refused(model, x), (model.kinds, report)
    assert ("operands of one type" in " ".join(str(report).split())) is (report.types is not None)


def test_a_check_has_something_to_change() -> None:
    torch.manual_seed(0)
    model, x = Chain(random.Random(0)), torch.randn(5, WIDTH)
    model.kinds = ["linear", "wide", "linear"]
    report = check(model, lambda: model(x).square().mean())
    assert [finding.kind for finding in report.findings] == ["types"]
    assert report.findings[0].code == "x = layer(x)" and "Nothing to change" not in str(report)
    model.kinds = ["linear", "back", "linear"]
    assert check(model, lambda: model(x).square().mean()).findings == ()
    model.kinds = ["linear", "wide", "linear"]  # autocast casts
    assert check(model, lambda: model(x).square().mean(), format="autocast").findings == ()
