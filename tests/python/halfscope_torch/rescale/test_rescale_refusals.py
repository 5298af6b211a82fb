"""Refusals of `rescale`: one line that names the tensor and what holds it, or what to give instead."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn

from halfscope.torch import rescale

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.layer(x) + self.calls


def large(*layers: nn.Module) -> nn.Sequential:
    """The first layer's weight times 2^17."""
    torch.manual_seed(0)
    model = nn.Sequential(*layers)
    with torch.no_grad():
        next(iter(model.parameters())).mul_(2.0**17)
    return model


X = torch.ones(8, 4)
HELD = {
    "gelu": (large(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 2)), X, r"'0' .*, is held by gelu in '1'"),
    "output": (large(nn.Linear(4, 4)), X, r"'0' .*, is held by the model's output"),
    "scores": (large(nn.Linear(4, 4), nn.Softmax(-1)), X, r"'0' .*, is held by softmax in '1'"),
    "input": (nn.Sequential(nn.Linear(4, 4), nn.ReLU()), 1e5 * X, r"the model's input, .*, stays as it is"),
    "infinite": (nn.Linear(4, 4), float("inf") * X, "the model's input is not finite in FP32"),
}
BAD: dict[str, tuple[tuple, dict[str, Any], type[Exception], str]] = {
    "model": ((3, [X]), {}, TypeError, "rescale: model=3; give a module of PyTorch"),
    "half": ((nn.Linear(4, 4).half(), [X]), {}, TypeError, "rescale: 'weight' is torch.float16; give model.float()"),
    "tensor": ((nn.Linear(4, 4), X), {}, TypeError, r"rescale: batches is a tensor \(8, 4\).*; give a list"),
    "none": ((nn.Linear(4, 4), []), {}, ValueError, "rescale: batches has no batch; give one or more"),
    "labels": ((nn.Linear(4, 4), [(X, X)]), {}, TypeError, "rescale: a batch has 2 parts"),
    "text": ((nn.Linear(4, 4), ["x"]), {}, TypeError, "rescale: a batch is a str; give tensors"),
    "headroom": ((nn.Linear(4, 4), [X]), {"headroom": 1.5}, ValueError, "rescale: headroom=1.5; give whole binades"),
    "output": ((nn.Linear(4, 4), [X]), {"call": lambda model, batch: 3}, TypeError, "the model returns a int; give"),
    "noisy": ((Noisy(), [X]), {}, ValueError, "rescale: two runs of one batch differ in FP32"),
}  # fmt: skip


@pytest.mark.parametrize("name", HELD)
def test_the_tensor_that_blocks_is_named(name: str) -> None:
    model, x, words = HELD[name]
    before = {key: value.clone() for key, value in model.state_dict().items()}
    with pytest.raises(ValueError, match=words) as caught:
        rescale(model, [x])
    assert "\n" not in str(caught.value)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_line(name: str) -> None:
    args, options, kind, words = BAD[name]
    with pytest.raises(kind, match=words) as caught:
        rescale(*args, **options)
    assert "\n" not in str(caught.value)
