"""Weight gradients are those of the backward pass: clipping comes later."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

import halfscope
from halfscope import Histogram
from halfscope.torch import watch
from planted import Planted, Scaler, records, train


def perceptron() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))


def trained(clip: float | None, steps: int = 3, out: Path | None = None) -> tuple:
    """A watched training whose weights stay, and the gradients of its backward passes."""
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    seen = []
    with watch(model, 1, optimizer=optimizer, out=out) as watched:
        for _ in range(steps):
            optimizer.zero_grad()
            (100 * model(torch.randn(64, 16)).square().sum()).backward()
            seen.append([parameter.grad.clone() for parameter in model.parameters()])
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
    return watched, seen


def test_the_recommended_scale_is_that_without_clipping(tmp_path: Path) -> None:
    free, gradients = trained(None)
    clipped, _ = trained(1.0, out=tmp_path / "clipped")
    assert free.advise_scale().verdict == clipped.advise_scale().verdict
    scale = clipped.advise_scale().recommended_scale
    assert not any(torch.isinf((scale * gradient).half()).any() for step in gradients for gradient in step)
    largest = [max(gradient.abs().max().item() for gradient in step) for step in gradients]
    assert [line["gradients"]["max_abs"] for line in clipped.trace()] == largest
    replayed = halfscope.replay(clipped.trace(), "16384").runs[0]
    assert replayed.overflowed == 3
    lines = records(tmp_path / "clipped", "metrics.jsonl")
    roles = {tensor["role"] for line in lines for tensor in line["tensors"]}
    assert {"weight_gradient", "optimizer_gradient"} <= roles


def test_both_moments_are_kept_where_they_differ() -> None:
    clipped, gradients = trained(1.0)
    before, after = clipped.histograms("weight_gradient"), clipped.histograms("optimizer_gradient")
    assert before["0.weight"] == Histogram(torch.cat([step[0] for step in gradients]))
    assert set(before) == set(after) and after["0.weight"].max_abs <= 1 < before["0.weight"].max_abs
    assert "In 3 of 3 watched steps weight gradients changed between the backward pass and the optimizer" in (
        clipped.verdict
    )
    free, _ = trained(None)
    assert not free.histograms("optimizer_gradient") and "changed between" not in free.verdict


def test_gradients_that_a_closure_clips_are_seen_at_both_moments() -> None:
    """As Lightning steps."""
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    made = []

    def closure() -> torch.Tensor:
        loss = model(torch.randn(8, 16)).square().sum()
        loss.backward()
        made.append(model[0].weight.grad.clone())
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        return loss

    with watch(model, 1, optimizer=optimizer) as watched:
        optimizer.step(closure)
    assert watched.histograms("weight_gradient")["0.weight"] == Histogram(made[0])
    assert watched.histograms("optimizer_gradient")["0.weight"] == Histogram(model[0].weight.grad)


def test_the_last_accumulation_is_counted_once() -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer) as watched:
        for _ in range(4):
            model(torch.randn(8, 16)).sum().backward()
        gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
        optimizer.step()
    assert watched.histograms("weight_gradient") == {name: Histogram(given) for name, given in gradients.items()}
    assert watched.histograms("activation")["0"].elements == 4 * 8 * 32


def test_unscaling_by_a_power_of_two_is_no_change_and_by_another_factor_neither() -> None:
    for scale in (1024.0, 1000.0):
        model = Planted()
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        scaler = Scaler(scale)
        with watch(model, 1, optimizer=optimizer, scaler=scaler) as watched:
            train(model, optimizer, 2, scaler)
        assert not watched.histograms("optimizer_gradient")


def test_gradients_of_a_reentrant_backward_pass_are_counted_once() -> None:
    from torch.utils.checkpoint import checkpoint

    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer) as watched:
        inputs = torch.randn(8, 16, requires_grad=True)
        hidden = checkpoint(model[0], inputs, use_reentrant=True)
        model[2](model[1](hidden)).sum().backward()
        gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
        optimizer.step()
    assert watched.histograms("weight_gradient") == {name: Histogram(given) for name, given in gradients.items()}


def test_a_backward_pass_that_fails_does_not_hide_the_next_one() -> None:
    class Failing(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.clone()

        @staticmethod
        def backward(context, gradient):
            raise MemoryError

    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    inputs = torch.randn(8, 16)
    with watch(model, 1, optimizer=optimizer) as watched:
        with pytest.raises(MemoryError):
            model[2](Failing.apply(model[0](inputs))).sum().backward()
        optimizer.zero_grad()
        model(inputs).sum().backward()
        gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
    found = watched.histograms("weight_gradient")
    assert found["0.weight"] == Histogram(gradients["0.weight"])
