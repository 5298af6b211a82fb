"""Training scripts under emulation: checkpointing, accumulation, shared modules, Functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.utils.checkpoint import checkpoint

from halfscope.torch import Emulation, emulate

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def emulated_steps(model: nn.Module, policy: Any, loss_of: Callable, steps: int = 3) -> Emulation:
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with emulate(model, policy, optimizer=optimizer, compare_steps=()) as emulated:
        for _ in range(steps):
            loss = loss_of()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return emulated


def is_of(tensor: torch.Tensor, kind: torch.dtype) -> bool:
    return torch.equal(tensor, tensor.to(kind).float())


def counts_of(emulated: Emulation) -> dict[tuple[str, str], tuple[int, int]]:
    return {key: (total.elements, total.flushed) for key, total in emulated.casts().items()}


class Checkpointed(nn.Module):
    """Two blocks, each followed by operations of the model itself."""

    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.enter, self.leave, self.reentrant = nn.Linear(8, 8), nn.Linear(8, 3), reentrant
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 8)) for _ in range(2)
        )

    def segment(self, block: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(block(x)) * 2 + x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.enter(x)
        for block in self.blocks:
            if self.reentrant is None:
                x = self.segment(block, x)
            else:
                x = checkpoint(self.segment, block, x, use_reentrant=self.reentrant)
            x = x if self.reentrant is None else checkpoint(nn.functional.gelu, x, use_reentrant=self.reentrant)
            x = nn.functional.gelu(x) if self.reentrant is None else x
        return self.leave(x)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("policy", ["bf16", "fp16/stochastic", "fp8_e5m2/stochastic"])
def test_checkpointing_gives_the_same_bits(policy: str, reentrant: bool) -> None:
    """And counts nothing twice."""

    def run(how: bool | None) -> tuple[list[torch.Tensor], dict]:
        torch.manual_seed(0)
        model, x = Checkpointed(how), torch.randn(5, 8)
        emulated = emulated_steps(model, policy, lambda: model(x).square().mean())
        return [tensor for p in model.parameters() for tensor in (p.detach(), p.grad)], counts_of(emulated)

    plain, checkpointed = run(None), run(reentrant)
    assert all(map(torch.equal, plain[0], checkpointed[0]))
    assert plain[1] == checkpointed[1]


def test_stochastic_rounding_differs_by_seed_and_step() -> None:
    def gradients(seed: int) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model, x, found = nn.Linear(64, 64), torch.randn(8, 64), []
        optimizer = torch.optim.SGD(model.parameters(), 0.0)
        with emulate(model, "fp16/stochastic", optimizer=optimizer, seed=seed, compare_steps=()):
            for _ in range(2):
                optimizer.zero_grad()
                model(x).square().mean().backward()
                optimizer.step()
                found.append(model.weight.grad.clone())
        return found

    first, again, other = gradients(1), gradients(1), gradients(2)
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0]) and not torch.equal(first[0], first[1])


def test_accumulated_gradients_add_up_in_fp32() -> None:
    model, parts = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)), torch.randn(3, 4, 6)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with emulate(model, "fp16", optimizer=optimizer, compare_steps=()) as emulated:
        separate = []
        for part in parts:
            model.zero_grad()
            model(part).square().mean().backward()
            separate.append(model[0].weight.grad.clone())
        model.zero_grad()
        for part in parts:
            model(part).square().mean().backward()
        together = model[0].weight.grad.clone()
        assert emulated.steps == 0
        optimizer.step()
        assert emulated.steps == 1
    assert all(is_of(gradient, torch.float16) for gradient in separate)
    assert torch.equal(together, separate[0] + separate[1] + separate[2])


def test_a_module_that_is_used_twice_and_one_with_two_names() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Linear(6, 6)
            self.alias, self.tied = self.a, nn.Linear(6, 6)
            self.tied.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.tied(self.alias(self.a(x)))

    model, x = Shared(), torch.randn(4, 6)
    emulated = emulated_steps(model, "fp16", lambda: model(x).square().mean(), 2)
    casts = counts_of(emulated)
    assert casts["activation", "a"][0] == 2 * 2 * 4 * 6  # steps, calls, elements
    assert casts["activation", "tied"][0] == 2 * 4 * 6
    assert casts["weight", "a.weight"][0] == 2 * 36  # once a step, whoever uses it
    assert casts["weight_gradient", "a.weight"][0] == 2 * 36
    assert is_of(model.a.weight.grad, torch.float16)


class Cube(torch.autograd.Function):
    """With arithmetic of its own in both passes."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


def test_a_function_of_ones_own_is_rounded_at_each_operation() -> None:
    class Cubed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Cube.apply(x)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.cube = nn.Linear(6, 6), Cubed()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.cube(self.linear(x))

    model, x, seen = Model(), torch.randn(4, 6), []
    model.cube.register_forward_hook(lambda _module, inputs, output: seen.append((inputs[0].detach(), output.detach())))
    emulated = emulated_steps(model, "bf16", lambda: model(x).square().mean(), 1)
    before, after = (tensor.bfloat16() for tensor in seen[0])
    assert torch.equal(after, before * before * before)  # PyTorch's own BF16
    assert is_of(seen[0][1], torch.bfloat16)
    assert ("activation_gradient", "cube.mul") in emulated.casts()


class InPlace(nn.Module):
    """The same arithmetic in place or not, on views too."""

    def __init__(self, in_place: bool) -> None:
        super().__init__()
        self.linear, self.in_place = nn.Linear(6, 8), in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        if self.in_place:
            x = (x - 0.1).mul_(1.7).add_(0.3)
            x[:, 1:4].mul_(0.7)
            x[0] = x[1] * 0.9
            return x.clamp_(max=0.9)
        x = (x - 0.1) * 1.7 + 0.3
        x = torch.cat([x[:, :1], x[:, 1:4] * 0.7, x[:, 4:]], 1)
        return torch.cat([x[1:2] * 0.9, x[1:]]).clamp(max=0.9)


@pytest.mark.parametrize("policy", ["bf16", "fp8_e5m2"])
def test_operations_in_place(policy: str) -> None:
    def run(in_place: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        model, x, outputs = InPlace(in_place), torch.randn(4, 6), []
        model.register_forward_hook(lambda _module, _inputs, output: outputs.append(output.detach().clone()))
        emulated_steps(model, policy, lambda: model(x).square().mean(), 1)
        return outputs

    (given,), (expected,) = run(True), run(False)
    assert torch.equal(given, expected)


def test_a_loss_inside_the_model_is_fp32() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.loss = nn.Linear(6, 5), nn.CrossEntropyLoss()

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
            self.logits = self.linear(x)
            return self.loss(self.logits, labels)

    model, x, labels = WithLoss(), torch.randn(4, 6), torch.tensor([0, 1, 2, 3])
    losses: list[torch.Tensor] = []

    def loss_of() -> torch.Tensor:
        losses.append(model(x, labels))
        return losses[-1]

    emulated_steps(model, "bf16", loss_of, 1)
    assert torch.equal(losses[0], nn.functional.cross_entropy(model.logits.detach(), labels))
    assert not is_of(losses[0].detach(), torch.bfloat16)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_an_evaluation_inside_of_the_block(context: Callable) -> None:
    """Rounds like training, counts nothing, and leaves the training as it is."""
    model, x = nn.Sequential(nn.Linear(6, 5), nn.SELU(), nn.LayerNorm(5), nn.Linear(5, 2)), torch.randn(4, 6)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with emulate(model, "fp16", optimizer=optimizer, compare_steps=()) as emulated:
        output = model(x)
        counted = counts_of(emulated)
        with context():
            evaluated = model(x)
        assert counts_of(emulated) == counted
        output.square().mean().backward()
        optimizer.step()
    assert torch.equal(evaluated, output.detach())
    assert is_of(evaluated.clone(), torch.float16)


def test_an_evaluation_before_each_step_changes_no_count() -> None:
    """The weights' copies that it makes serve the step, too, whose casts are counted."""

    def counted(evaluates: bool) -> list[Any]:
        torch.manual_seed(0)
        model, x = nn.Sequential(nn.Linear(6, 5), nn.SELU(), nn.Linear(5, 2)), torch.randn(4, 6)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        steps = []
        with emulate(model, "fp16", optimizer=optimizer, compare_steps=()) as emulated:
            for _ in range(3):
                if evaluates:
                    with torch.no_grad():
                        model(torch.ones(2, 6))
                optimizer.zero_grad()
                model(x).square().mean().backward()
                model(x).square().mean().backward()
                optimizer.step()
                steps.append(counts_of(emulated))
        return steps

    assert counted(True) == counted(False)


def test_operations_between_modules_belong_to_the_module_around_them() -> None:
    class Between(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(torch.tanh(self.a(x)))

    model, x = Between(), torch.randn(4, 6)
    emulated = emulated_steps(model, "fp16", lambda: model(x).square().mean(), 1)
    assert {name for role, name in emulated.casts() if role == "activation_gradient"} == {"a", "b", "tanh"}


def test_a_gradient_that_is_a_view_is_rounded() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.weight.sum() * x

    model = Sum()
    emulated_steps(model, {"weight_gradient": "bf16"}, lambda: model(torch.tensor(0.3001)), 1)
    assert torch.equal(model.weight.grad, torch.full((4, 4), 0.3001).bfloat16().float())


@pytest.mark.parametrize("switch", ["foreach", "fused"])
def test_a_fused_optimizer_of_16_bit_weights_steps_one_by_one(switch: str) -> None:
    """Each of its operations is rounded once, and the setting is back afterwards."""
    model, x = nn.Linear(6, 5).bfloat16(), torch.randn(4, 6).bfloat16()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2, **{switch: True})
    before = model.weight.detach().clone()
    with emulate(model, "fp32", optimizer=optimizer) as emulated:
        model(x).float().square().mean().backward()
        optimizer.step()
    assert ("optimizer_state", "addcmul") in emulated.casts()
    assert ("master_weight", "bias") in emulated.casts()
    assert optimizer.param_groups[0][switch] is True
    assert not torch.equal(model.weight, before)
