"""A step that is compared with FP32, explained or diagnosed leaves behind what the step alone leaves."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import numpy as np
from torch import nn
from torch.nn import functional

from halfscope.torch import diagnose, emulate

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

PROGRAMS = 240
ROWS, COLUMNS = 6, 5


class State(nn.Module):
    """Tensors that a program writes to: numbers, integers, booleans, complex numbers, running averages."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(3)
        rand = lambda *size: torch.randn(*size, generator=generator)  # noqa: E731
        self.layer = nn.Linear(COLUMNS, COLUMNS)
        self.norm = nn.BatchNorm1d(COLUMNS)
        self.cumulative = nn.BatchNorm1d(COLUMNS, momentum=None)
        self.instances = nn.InstanceNorm1d(COLUMNS, track_running_stats=True)
        self.register_buffer("numbers", rand(ROWS, COLUMNS))
        self.register_buffer("whole", torch.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS))
        self.register_buffer("flags", rand(ROWS, COLUMNS) > 0)
        self.register_buffer("parts", torch.complex(rand(ROWS), rand(ROWS)), persistent=False)
        self.register_buffer("picks", torch.arange(ROWS) % 3, persistent=False)


def cells(state: Any) -> Any:
    return state.picks.unsqueeze(1).expand(ROWS, COLUMNS).contiguous()


# Statements of the state s and the activations x (rows, columns), which they hand on.
STATEMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "numbers.add_": lambda s, x: (s.numbers.add_(0.125), x)[1],
    "numbers.mul_": lambda s, x: (s.numbers.mul_(x.detach()), x)[1],
    "numbers.lerp_": lambda s, x: (s.numbers.lerp_(x.detach(), 0.1), x)[1],
    "numbers.index_add_": lambda s, x: (s.numbers.index_add_(0, s.picks, x.detach()), x)[1],
    "numbers.scatter_add_": lambda s, x: (s.numbers.scatter_add_(0, cells(s), x.detach()), x)[1],
    "numbers.index_put_": lambda s, x: (s.numbers.index_put_((s.picks,), x.detach(), accumulate=True), x)[1],
    "numbers.addcmul_": lambda s, x: (s.numbers.addcmul_(x.detach(), x.detach(), value=0.5), x)[1],
    "numbers.cumsum_": lambda s, x: (s.numbers.cumsum_(0), x)[1],
    "numbers.clamp_": lambda s, x: (s.numbers.clamp_(-1, 1), x)[1],
    "numbers row": lambda s, x: (s.numbers[1].add_(1), x)[1],
    "_foreach_add_": lambda s, x: (torch._foreach_add_([s.numbers, s.whole], 2), x)[1],
    "add out": lambda s, x: (torch.add(s.numbers, x.detach(), out=s.numbers), x)[1],
    "sum out": lambda s, x: x + torch.sum(x.detach(), 0, out=torch.empty(COLUMNS)),
    "topk out": lambda s, x: (
        torch.topk(x.detach(), COLUMNS, out=(torch.empty_like(x), s.whole)), x + s.whole.float() / 8)[1],
    "whole +=": lambda s, x: (s.whole.add_(3), x)[1],
    "whole *=": lambda s, x: (s.whole.mul_(2), x)[1],
    "whole -=": lambda s, x: (s.whole.sub_(s.picks.unsqueeze(1)), x)[1],
    "whole cumsum_": lambda s, x: (s.whole.cumsum_(1), x)[1],
    "whole index_add_": lambda s, x: (s.whole.index_add_(0, s.picks, s.whole.clone()), x)[1],
    "whole scatter_add_": lambda s, x: (s.whole.scatter_add_(0, cells(s), torch.ones_like(s.whole)), x)[1],
    "whole index_put_": lambda s, x: (
        s.whole.index_put_((s.picks,), torch.ones_like(s.whole), accumulate=True), x)[1],
    "whole out": lambda s, x: (torch.add(s.whole, 1, out=s.whole), x)[1],
    "whole used": lambda s, x: x * (1 + s.whole.remainder(5).float() / 8),
    "whole xor": lambda s, x: (s.whole.bitwise_xor_(3), x)[1],
    "flags xor": lambda s, x: (s.flags.logical_xor_(x.detach() > 0), x)[1],
    "flags used": lambda s, x: x.masked_fill(s.flags, 0.5),
    "parts *=": lambda s, x: (s.parts.mul_(1j), x)[1],
    "parts += x": lambda s, x: (s.parts.add_(x.detach()[:, 0]), x + s.parts.real.unsqueeze(1) / 16)[1],
    "picks": lambda s, x: (s.picks.add_(1).remainder_(3), x)[1],
    "norm": lambda s, x: s.norm(x),
    "cumulative": lambda s, x: s.cumulative(x),
    "instances": lambda s, x: s.instances(x.reshape(2, 3, COLUMNS).transpose(1, 2)).transpose(1, 2).reshape_as(x),
    "layer": lambda s, x: s.layer(x),
    "relu_": lambda s, x: (x * 1).relu_(),
    "clone +=": lambda s, x: x.clone().add_(x.detach() * 0.25),
    "dropout": lambda s, x: functional.dropout(x, 0.3),
    "rand": lambda s, x: x + torch.rand_like(x) / 4,
    "bernoulli_": lambda s, x: x * torch.empty_like(x).bernoulli_(0.7),
    "randint": lambda s, x: (s.whole.add_(torch.randint_like(s.whole, 4)), x)[1],
    "numpy": lambda s, x: x + float(np.random.rand()),
    "python": lambda s, x: x * random.uniform(0.5, 1),
}  # fmt: skip


class Program(State):
    """Statements drawn with a seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.names = random.Random(seed).choices(list(STATEMENTS), k=9)

    def forward(self, x: Any) -> Any:
        x = self.layer(x)
        for name in self.names:
            x = STATEMENTS[name](self, x)
        return x


def seeded() -> None:
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)


def left_behind(model: nn.Module) -> dict[str, Any]:
    """Everything that a step may have changed."""
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    found |= {f"{name} =": value.detach() for name, value in (*model.named_parameters(), *model.named_buffers())}
    return {**found, "next": torch.rand(3), "numpy": torch.tensor(np.random.rand(3)), "python": random.random()}


def same(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return bool(one == other) if one is not None else other is None
    return bool(((one == other) | (one.isnan() & other.isnan())).all())


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    return [name for name in expected if not same(found[name], expected[name])]


def trained(seed: int, policy: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    """One step of a program; the names of its statements, and what it leaves behind."""
    seeded()
    model = Program(seed)
    x = torch.randn(ROWS, COLUMNS)
    with emulate(model, policy, optimizer=torch.optim.SGD(model.parameters(), 0.1), **options):
        model(x).square().mean().backward()
    return model.names, left_behind(model)


@pytest.mark.parametrize("policy", ["fp16_mixed", "bf16", "autocast_cuda", "mxfp8"])
def test_a_compared_step_is_the_step(policy: str) -> None:
    for seed in range(PROGRAMS // 4):
        names, expected = trained(seed, policy, compare_steps=())
        for options in ({}, {"floor": True}, {"zeros": True, "compare_steps": ()}, {"zeros": True, "floor": True}):
            _, found = trained(seed, policy, **options)
            assert not differences(found, expected), (seed, options, names)


@pytest.mark.parametrize("policy", ["fp16_mixed", "fp16"])
def test_arithmetic_of_twins_is_not_counted(policy: str) -> None:
    """Twins compute in hooks of gradients and nodes too, where the mode is on."""
    for seed in range(PROGRAMS // 8):
        expected = counted(seed, policy, compare_steps=())
        for options in ({}, {"floor": True}, {"zeros": True, "floor": True}):
            assert counted(seed, policy, **options) == expected, (seed, options)


def counted(seed: int, policy: str, **options: Any) -> dict[Any, Any]:
    """Counts of the casts of one step of a program, and its first overflow."""
    seeded()
    model = Program(seed)
    x = torch.randn(ROWS, COLUMNS)
    with emulate(model, policy, optimizer=torch.optim.SGD(model.parameters(), 0.1), **options) as emulation:
        model(x).square().mean().backward()
    return {key: vars(total) for key, total in emulation.casts().items()} | {"first": emulation.first_overflow}


class SignOfAScaled(nn.Module):
    """PyTorch multiplies the zero gradient of a sign by shapes alone, on the device meta."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.5, -2.0, 0.25]))

    def forward(self) -> torch.Tensor:
        return self.weight.sum() + torch.sgn(self.weight * 2).sum()


@pytest.mark.parametrize("policy", ["fp16", "fp16_mixed", "autocast_cuda", "mxfp8"])
def test_shapes_without_numbers_are_let_through(policy: str) -> None:
    model = SignOfAScaled()
    assert diagnose(model, model, policy).is_healthy
    for options in ({}, {"floor": True}, {"zeros": True}):
        with emulate(model, policy, optimizer=torch.optim.SGD(model.parameters(), 0.0), **options):
            model().backward()
    assert torch.equal(model.weight.grad, torch.full((3,), 3.0))


@pytest.mark.parametrize("floor", [False, True])
def test_running_averages_of_a_compared_step_are_pytorchs(floor: bool) -> None:
    x = torch.randn(32, 4)
    norms = [nn.BatchNorm1d(4), nn.BatchNorm1d(4)]
    norms[0](x).mean().backward()
    with emulate(norms[1], "fp16_mixed", optimizer=torch.optim.SGD(norms[1].parameters(), 0.1), floor=floor):
        norms[1](x.half().float()).mean().backward()
    own = nn.BatchNorm1d(4)
    own(x.half().float())
    for name, buffer in own.named_buffers():
        assert torch.equal(dict(norms[1].named_buffers())[name], buffer), name


def test_a_diagnosis_leaves_everything_as_it_was() -> None:
    for seed in range(PROGRAMS // 8):
        seeded()
        model, x = Program(seed), torch.randn(ROWS, COLUMNS)
        before = {name: value.clone() for name, value in (*model.named_parameters(), *model.named_buffers())}
        tensors = dict(model.named_buffers())
        draws = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
        diagnose(model, lambda: model(x).square().mean())  # noqa: B023
        after = dict((*model.named_parameters(), *model.named_buffers()))
        assert not differences(after, before), (seed, model.names)
        assert all(after[name] is tensor for name, tensor in tensors.items())
        assert torch.equal(draws[0], torch.get_rng_state())
        assert (draws[1], draws[2]) == (np.random.get_state()[1].tolist(), random.getstate())


def test_a_buffer_that_a_step_replaces_or_adds_is_put_back() -> None:
    class Grows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)
            self.register_buffer("kept", torch.zeros(1), persistent=False)
            self.register_buffer("later", None)

        def forward(self, x: Any) -> Any:
            self.kept = torch.cat([self.kept, self.kept.new_ones(1)])
            self.later = self.kept * 2
            self.register_buffer("new", self.kept)
            return self.layer(x) * self.kept.sum()

    model = Grows()
    kept = model.kept
    diagnose(model, lambda: model(torch.ones(1, 2)).mean())
    assert model.kept is kept
    assert model.later is None
    assert not hasattr(model, "new")


def test_integers_that_the_model_counts_with() -> None:
    """The loss is that of FP32, whose counting is the same."""

    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(16, 4)

        def forward(self, ids: Any) -> Any:
            ids = ids.clone()
            ids += 1
            return self.embedding(ids)

    model = Counts()
    ids = torch.arange(8)
    expected = model(ids).square().mean().item()
    found = diagnose(model, lambda: model(ids).square().mean())
    assert [found.loss, found.loss_in_fp32] == pytest.approx([expected] * 2, rel=2e-3)
