"""Faults that a watched FP32 run would have in FP16: told where PyTorch's own FP16 run has them, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import watch

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Step = Callable[[Any, Any, Any], Any]  # takes the tensor at hand, the first one, and a constant
PROGRAMS = 200  # in each block
FEWEST = 60  # programs with a clear answer


def written(h: Any, part: Any, at: int) -> Any:
    """`part` in the last columns of a copy."""
    copy = h.clone()
    copy[:, at:] = part[:, at:]
    return copy


def mask(x: Any, value: float | None = None) -> Any:
    """0, and `value` for negative numbers; without one the lowest number of the type."""
    lowest = float(torch.finfo(x.dtype).min) if value is None else value
    return torch.where(x < 0, lowest, 0.0).to(x.dtype)


STEPS: dict[str, tuple[list[Any], Step]] = {  # constants to draw from, and the operations
    "scaled": ([-300.0, 0.01, 3.0, 300.0], lambda h, x, c: c * h),
    "quotient": ([0.003, 7.0], lambda h, x, c: h / c),
    "square": ([None], lambda h, x, c: h * h),
    "power": ([2, 3], lambda h, x, c: h**c),
    "sum": ([None], lambda h, x, c: h + x),
    "difference": ([None], lambda h, x, c: h - x),
    "of both": ([None], lambda h, x, c: h + h + h),
    "shifted": ([1.0, 1e-3, 3e4], lambda h, x, c: h + c),
    "exponential": ([1.0, 1e-3], lambda h, x, c: torch.exp(c * h)),
    "logarithm": ([1e-8, 1e-3], lambda h, x, c: torch.log(h.abs() + c)),
    "reciprocal": ([1e-8, 1.0], lambda h, x, c: 1 / (h.abs() + c)),
    "ratio": ([None], lambda h, x, c: x / (h.abs() + 1e-8)),
    "root": ([None], lambda h, x, c: torch.sqrt(h.abs())),
    "inverse root": ([None], lambda h, x, c: torch.rsqrt(h.abs() + 1e-8)),
    "row sum": ([None], lambda h, x, c: h.sum(-1, keepdim=True) + x),
    "row mean": ([None], lambda h, x, c: h - h.mean(-1, keepdim=True)),
    "norm": ([None], lambda h, x, c: h / (h.pow(2).mean(-1, keepdim=True) + 1e-3).sqrt()),
    "relu": ([None], lambda h, x, c: torch.relu(h)),
    "sigmoid": ([None], lambda h, x, c: torch.sigmoid(h)),
    "tanh": ([None], lambda h, x, c: torch.tanh(h)),
    "clamp": ([1.0, 1e4, 6e4], lambda h, x, c: h.clamp(-c, c)),
    "minimum": ([None], lambda h, x, c: torch.minimum(h, x)),
    "where large": ([None], lambda h, x, c: torch.where(h > 1e4, x, h)),
    "where not": ([None], lambda h, x, c: torch.where(h.abs() < 1e4, h, x)),
    "softmax": ([None], lambda h, x, c: torch.softmax(h, -1)),
    "filled softmax": ([-1e4, -6e4], lambda h, x, c: torch.softmax(h.masked_fill(x < 0, c), -1)),
    "masked softmax": ([-1e4, -1e9, None], lambda h, x, c: torch.softmax(h + mask(x, c), -1)),
    "masked": ([-1e9, None], lambda h, x, c: h + mask(x, c)),
    "compared": ([None], lambda h, x, c: torch.where(300 * h > 1e4, 1.0, x)),
    "unused": ([None], lambda h, x, c: (h * 1e4, x)[1]),
    "product": ([None], lambda h, x, c: h @ x.T @ x),
    "transposed": ([None], lambda h, x, c: (h.T @ h)[: len(h)][:, : h.shape[1]]),
    "layer norm": ([None], lambda h, x, c: nn.functional.layer_norm(h, h.shape[-1:])),
    "scaled in place": ([300.0, 0.01], lambda h, x, c: h.clone().mul_(c)),
    "relu in place": ([None], lambda h, x, c: h.clone().relu_()),
    "clamped in place": ([None], lambda h, x, c: h.clone().clamp_(max=1.0)),
    "divided in place": ([None], lambda h, x, c: x.clone().div_(h.abs() + 1e-8)),
    "zero in place": ([None], lambda h, x, c: h.clone().zero_() + x),
    "filled in place": ([None], lambda h, x, c: h.clone().masked_fill_(h.abs() > 6e4, 1.0)),
    "written": ([0, 1, 2, 3], lambda h, x, c: written(x, h, c)),
    "overwritten": ([0, 1, 2, 3], lambda h, x, c: written(h, x, c)),
    "halves": ([None], lambda h, x, c: torch.cat(h.chunk(2, -1)[::-1], -1)),
    "first rows": ([None], lambda h, x, c: torch.cat([x[:1], h[1:]])),
    "view": ([None], lambda h, x, c: h.reshape(h.shape[1], h.shape[0]).T.reshape(h.shape)),
    "maximum of rows": ([None], lambda h, x, c: h - h.max(-1, keepdim=True).values),
    "scaled in FP32": ([300.0, 0.01], lambda h, x, c: (h.float() * c).to(h.dtype)),
    "square in FP32": ([None], lambda h, x, c: h.to(torch.float32).square().to(h.dtype)),
    "norm in FP32": (
        [None],
        lambda h, x, c: (h.float() / (h.float().pow(2).mean(-1, keepdim=True) + 1e-3).sqrt()).to(h.dtype),
    ),
    "softmax in FP32": ([None], lambda h, x, c: torch.softmax(h * 3, -1, dtype=torch.float32).to(h.dtype)),
    "sum in FP32": ([None], lambda h, x, c: h.sum(-1, keepdim=True, dtype=torch.float32).to(h.dtype) + x),
    "sum of both in FP32": ([300.0, 1.0], lambda h, x, c: (x + c * h.float()).type_as(x)),
    "difference in FP32": ([1e4], lambda h, x, c: (h.float() * c - h.float() * c).to(h.dtype) + x),
    "cumulated": ([None], lambda h, x, c: h.cumsum(-1)),
}


class Program(nn.Module):
    """A layer, then operations drawn at random; each has the tensor at hand and the layer's output."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        draw = random.Random(seed)
        torch.manual_seed(seed)
        self.layer, self.after = nn.Linear(4, 6), nn.Linear(6, 6)
        self.names = draw.choices(sorted(STEPS), k=draw.randint(2, 6))
        self._steps = [(step, draw.choice(constants)) for constants, step in map(STEPS.__getitem__, self.names)]
        self._has_layer_after = draw.random() < 0.3
        self.states: list[Any] = []
        self._size = draw.choice([1.0, 30.0, 3000.0])
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(parameter.half())

    def forward(self, x: Any) -> Any:
        first = self.layer(x) * self._size
        h = first
        for step, constant in self._steps:
            h = step(h, first, constant)
            if not torch.is_grad_enabled():  # a watched tensor that is kept is one in use
                self.states.append(h)
        return self.after(h) if self._has_layer_after else h


def is_off(half: Any, exact: Any) -> bool:
    """Whether numbers that are finite are wrong by more than roundings."""
    error = (half.double() - exact.double()).norm() / exact.double().norm().clamp_min(1e-30)
    return bool(half.isfinite().all()) and bool(error > 5e-3)


def is_told(model: Program, x: Any) -> bool:
    """Whether the report of a watched step, FP32 as it is, has a line on an operation."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer) as watched:
        output = model(x)
        output.sum().backward()
        optimizer.step()
    text = " ".join(watched.verdict.split())
    return "in step 1, in the run's own format" in text


def outcome(model: Program, x: Any) -> tuple[Any, bool]:
    """The output of a step, and whether all its gradients are finite."""
    with torch.no_grad():
        model(x)  # whose states are kept
    output = model(x)
    output.float().sum().backward()
    found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return output.detach().float(), all(bool(gradient.isfinite().all()) for gradient in found)


@pytest.mark.parametrize("block", range(4))
def test_a_fault_is_told_where_fp16_itself_has_one(block: int) -> None:
    judged, wrong = 0, []
    for seed in range(block * PROGRAMS, (block + 1) * PROGRAMS):
        model, twin = Program(seed), Program(seed).half()
        x = torch.randn(5, 4).half().float()
        (exact, _), (half, has_gradients) = outcome(model, x), outcome(twin, x.half())
        if not bool(exact.isfinite().all()):
            continue
        is_broken = not bool(half.isfinite().all())
        is_doubtful = not has_gradients or is_off(half, exact) or any(map(is_off, twin.states, model.states))
        if not is_broken and is_doubtful:
            continue  # finite, and off: no fault of range, or one that is hidden with harm
        judged += 1
        model.states.clear()
        if is_told(model, x) != is_broken:
            wrong.append((seed, is_broken, model.names))
    assert wrong == []
    assert judged > FEWEST


class Small(nn.Module):
    """Makes small numbers of large inputs before anything else, or a layer's first."""

    def __init__(self, has_layer: bool) -> None:
        super().__init__()
        self.layer, self._has_layer = nn.Linear(4, 4), has_layer

    def forward(self, x: Any) -> Any:
        return self.layer(x) if self._has_layer else self.layer(x * 1e-5)


@pytest.mark.parametrize("has_layer", [False, True])
def test_an_input_that_the_format_makes_infinite_is_told_where_it_is_used_first(has_layer: bool) -> None:
    model = Small(has_layer)
    with torch.no_grad():
        model.layer.weight.mul_(1e-3)
    with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) as watched:
        model(torch.tensor([[1.0, 2.0, 3.0, 1e5]])).sum().backward()
    line = f"test_format_path.py:{Small.forward.__code__.co_firstlineno + 1}"
    text = " ".join(watched.verdict.split())
    assert text.startswith(line), text
    assert "a cast overflows: 1e+05" in text


class Failing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any, fails: bool) -> Any:
        x = self.layer(x).float()
        if fails:
            raise RuntimeError("the model's own error")
        return x.to(torch.float32)


def test_casts_are_pytorchs_own_after_a_forward_pass_and_after_an_error() -> None:
    model, before = Failing(), (dict(vars(torch.Tensor)), torch.softmax, nn.functional.softmax)
    with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0)):
        model(torch.ones(1, 4), False).sum().backward()
        assert (dict(vars(torch.Tensor)), torch.softmax, nn.functional.softmax) == before
        with pytest.raises(RuntimeError, match="own error"):
            model(torch.ones(1, 4), True)
        assert (dict(vars(torch.Tensor)), torch.softmax, nn.functional.softmax) == before


def test_casts_to_fp32_leave_a_step_as_it_is() -> None:
    """The marks that tell an FP32 part from the rest change no number and no gradient."""
    found = []
    for is_watched in (False, True):
        torch.manual_seed(0)
        model = Program(19)
        model._steps = [(STEPS[name][1], 3.0) for name in STEPS if name.endswith("in FP32")]
        x = torch.randn(5, 4)
        with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) if is_watched else nullcontext():
            output = model(x)
            output.sum().backward()
        found.append(
            [output.detach(), *(parameter.grad for parameter in model.parameters() if parameter.grad is not None)]
        )
    assert len(found[0]) > 2 and all(map(torch.equal, *found))


class Residual(nn.Module):
    """Norms in FP32 of a tensor that is used beside them too: its gradients are added in PyTorch's order."""

    def __init__(self, depth: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x: Any) -> Any:
        h = self.layers[0](x)
        for place, layer in enumerate(self.layers):
            h = h + layer(self.normed(h) if place % 2 else self.normed_by_copy(h)) + 0.3 * h.tanh()
        return torch.softmax(h, -1, dtype=torch.float32).to(h.dtype) + h.square() + h

    def normed(self, h: Any) -> Any:
        wide = h.to(torch.float32)
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(h.dtype)

    def normed_by_copy(self, h: Any) -> Any:
        return (h.float() / (h.float().square().sum(-1, keepdim=True) + 1).sqrt()).type_as(h)


@pytest.mark.parametrize("seed", range(12))
def test_gradients_of_a_watched_step_are_added_in_pytorchs_order(seed: int) -> None:
    found = []
    for is_watched in (False, True):
        torch.manual_seed(seed)
        model = Residual(3 + seed % 4, 5 + seed)
        x = torch.randn(7, 5 + seed) * 10.0 ** (seed % 5)
        with watch(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0)) if is_watched else nullcontext():
            model(x).square().sum().backward()
        found.append([parameter.grad for parameter in model.parameters()])
    assert all(map(torch.equal, *found))
