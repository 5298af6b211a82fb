"""Trainings of other people's networks under emulation: no unknown operation, and a finite loss or the reason."""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from foreign_networks import OF_OTHERS, OF_PYTORCH
from halfscope.torch import Emulation, GradScaler, emulate
from halfscope.torch.emulate.marks import Mark, Marks

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

FP8 = {"weight": "fp8_e4m3", "activation": "fp8_e4m3", "activation_gradient": "fp8_e5m2", "weight_gradient": "fp8_e5m2"}
POLICIES: dict[str, Any] = {"fp16_mixed": "fp16_mixed", "bf16": "bf16", "fp8": FP8}
SCALED = ("fp16_mixed", "autocast_cuda", "apex_o2")
# Minus infinity, with which attention masks, is NaN in E4M3; and boxes in pixels overflow it.
MASKED = ("bert", "gpt2", "encoder")
BOXES = ("ssd", "faster_rcnn")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def network(name: str) -> tuple[torch.nn.Module, Callable[[], torch.Tensor]]:
    if name in OF_OTHERS:
        pytest.importorskip("transformers" if name in ("bert", "gpt2") else "torchvision")
    return {**OF_PYTORCH, **OF_OTHERS}[name]()


def train(model: torch.nn.Module, loss_of: Callable, policy: Any, steps: int) -> tuple[list[float], Emulation]:
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-4)
    scaler = GradScaler("dynamic") if policy in SCALED else None
    losses = []
    with emulate(model, policy, optimizer=optimizer, scaler=scaler, compare_steps=()) as emulated:
        for _ in range(steps):
            loss = loss_of()
            optimizer.zero_grad()
            losses.append(loss.item())
            if scaler is None:
                loss.backward()
                optimizer.step()
            else:
                scaler.scale(loss).backward()
                scaler.step(optimizer)
                scaler.update()
    return losses, emulated


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", [*OF_PYTORCH, *OF_OTHERS])
def test_twenty_steps(name: str, policy: str) -> None:
    model, loss_of = network(name)
    losses, emulated = train(model, loss_of, POLICIES[policy], 20)
    roles = {role for role, _ in emulated.casts()}
    assert roles == {"weight", "activation", "activation_gradient", "weight_gradient"}
    if policy != "fp8":
        assert all(map(math.isfinite, losses)), emulated.first_overflow
        assert statistics.median(losses[10:]) < losses[0]  # a loss of two pictures jumps, in FP32 too
    elif name in MASKED:
        first = emulated.first_overflow
        assert first.role == "activation" and first.nonfinite and ("where" in first.tensor or "fill" in first.tensor)
    elif name in BOXES:
        assert emulated.first_overflow.overflow and emulated.first_overflow.role == "activation"
    else:
        assert all(map(math.isfinite, losses)) or emulated.first_overflow.overflow


@pytest.mark.parametrize("policy", ["autocast_cuda", "apex_o2", "fp16_no_master", "fp16_pure"])
@pytest.mark.parametrize("name", [*OF_PYTORCH, *OF_OTHERS])
def test_other_policies(name: str, policy: str) -> None:
    model, loss_of = network(name)
    losses, emulated = train(model, loss_of, policy, 3)
    assert all(map(math.isfinite, losses)) or emulated.first_overflow is not None
    if policy in ("fp16_no_master", "fp16_pure"):
        for parameter in model.parameters():
            assert torch.equal(parameter, parameter.half().float()) or not parameter.isfinite().all()


HALF_INPUTS = {
    "bert": lambda model: model(input_ids=torch.randint(100, (2, 16))).logits,
    "resnet50": lambda model: model(torch.randn(2, 3, 32, 32).half()),
    "encoder": lambda model: model(torch.randn(2, 6, 16).half()),
    "lstm": lambda model: model(torch.randn(4, 3, 8).half()),
}


@pytest.mark.parametrize("name", HALF_INPUTS)
def test_a_script_that_calls_half(name: str) -> None:
    """FP16 of PyTorch's own type, on a CPU; policy fp32 leaves the types as they are."""
    model, _ = network(name)
    model.half()
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with emulate(model, "fp32", optimizer=optimizer) as emulated:
        for _ in range(3):
            loss = HALF_INPUTS[name](model).float().square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert emulated.steps == 3 and math.isfinite(loss.item())
    assert {parameter.grad.dtype for parameter in model.parameters() if parameter.grad is not None} == {torch.float16}


@pytest.mark.parametrize("name", ["encoder", "unet", "lstm", "bert"])
def test_a_script_with_its_own_autocast(name: str) -> None:
    """PyTorch's autocast to BF16 decides what is BF16, and the emulation computes it."""
    model, loss_of = network(name)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    found = []
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_hook(lambda _module, _inputs, output: found.append(output.dtype))
    with emulate(model, "fp32", optimizer=optimizer):
        for _ in range(3):
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert set(found) == {torch.bfloat16}
    assert math.isfinite(loss.item())
    assert {parameter.grad.dtype for parameter in model.parameters() if parameter.grad is not None} == {torch.float32}


def count_of(kind: type) -> int:
    gc.collect()
    return sum(type(each) is kind for each in gc.get_objects())


def test_memory_does_not_grow() -> None:
    model, loss_of = network("encoder")
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    sizes, tensors, marks = [], [], []
    with emulate(model, "bf16", optimizer=optimizer, compare_steps=()) as emulated:
        for _ in range(6):
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            del loss
            sizes.append((count_of(torch.Tensor), count_of(Mark), len(emulated.casts())))
        with torch.no_grad():
            for _ in range(50):
                loss_of()
                tensors.append(count_of(torch.Tensor))
                marks.append(count_of(Mark))
    assert len(set(sizes[1:])) == 1
    assert len(set(tensors)) == 1
    assert marks[1] > marks[0]
    assert max(marks) <= Marks.UNPURGED
