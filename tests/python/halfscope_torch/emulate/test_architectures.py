"""Networks of transformers and torchvision at tiny size: each door runs them in every 16-bit policy."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("torchvision", reason="torchvision is not installed")
from halfscope.torch import diagnose, emulate, lint, watch
from library_networks import NAMES, loss_of, step_of

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

POLICIES = ("fp16", "bf16", "autocast_cuda")
SECONDS = 600.0  # enough on a busy machine too
# Constants of their sources that FP16 does not have: a mask of -1e10, a state that begins at -1e38 in FP32.
BEYOND_FP16 = ("LongT5", "Rwkv")
# Gradients so small, in the first step of tiny weights, that FP16 needs a loss scale.
SMALL_GRADIENTS = ("Segformer", "Sam")
# A first step whose loss after model.half() is off by more than 1 %: statistics of few elements, in many layers.
OFF_IN_FP16 = ("mnasnet0_5",)
# A model of 16 bits loses much of what running variances near 1 change by, at this momentum or less.
SMALL_MOMENTUM = 0.01


def least_momentum(model: Any) -> float:
    """The smallest of the norms with running statistics."""
    norms = (module for module in model.modules() if getattr(module, "running_var", None) is not None)
    return min((norm.momentum for norm in norms), default=1.0)


def loss_in_half(name: str) -> float:
    """The loss of `model.half()` on inputs in FP16."""
    torch.manual_seed(0)
    model, loss = step_of(name)
    model.half().register_forward_pre_hook(lambda _, args: tuple(each.half() for each in args))
    return float(loss_of(loss()).detach())


@pytest.mark.parametrize("name", NAMES)
def test_every_door_runs(name: str) -> None:
    torch.manual_seed(0)
    model, loss = step_of(name)
    plain = loss_of(loss())
    assert plain.isfinite()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for policy in POLICIES:
        found = diagnose(model, loss, policy, seconds=SECONDS)
        assert "backward pass was not looked at" not in str(found), policy
        kinds = {finding.kind for finding in found.findings}
        if kinds == {"state"} and policy != "autocast_cuda":
            assert least_momentum(model) <= SMALL_MOMENTUM
        elif kinds == {"state", "FP32"} and policy == "fp16" and name in OFF_IN_FP16:
            assert abs(loss_in_half(name) / plain.item() - 1) > 0.01  # PyTorch's own, so that it is no false alarm
        elif kinds == {"loss scale"} and policy != "bf16" and name in SMALL_GRADIENTS:
            assert not diagnose(model, loss, policy, scale=2.0**8, seconds=SECONDS).findings
        else:
            assert not kinds or name in BEYOND_FP16, (policy, str(found))
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        value = loss_of(loss())
        value.backward()
        optimizer.step()
    assert emulated.first_overflow is None or name in BEYOND_FP16
    assert value.item() == pytest.approx(plain.item(), rel=0.05)
    with watch(model, 1, optimizer=optimizer) as watched:
        loss_of(loss()).backward()
        optimizer.step()
    assert watched.steps == 1
    lint(model, optimizer, "fp16")
