"""Sentences of the verdict: what no loss scale helps comes first, and what was not seen is said."""

from __future__ import annotations

import dataclasses
import re

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from halfscope.torch import watch
from planted import ELEMENTS, Planted, Scale, Scaler, train


def perceptron() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))


def watched_step(model: torch.nn.Module, factor: float = 1.0, **options: object) -> object:
    """A step on the sum of the outputs times `factor`."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, **options) as watched:
        (factor * model(torch.randn(8, 16)).float().sum()).backward()
        optimizer.step()
    return watched


class Fp16Gradients(torch.nn.Module):
    """Autocast without autocast, which older versions lack on CPUs: the activations and their gradients are FP16."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Scale(), Scale()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.first.half(), self.second.half()
        return self.second(self.first(x.half()))


def test_gradients_that_fp16_has_flushed_already_are_not_called_zero_percent() -> None:
    model = Fp16Gradients()
    model.first.half(), model.second.half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        gradient = torch.full((ELEMENTS,), 2.0**-20)
        gradient[:300] = 2.0**-30  # becomes an exact zero
        (model(torch.ones(ELEMENTS)).float() * gradient).sum().backward()
        optimizer.step()
    verdict = watched.verdict
    assert "what FP16 flushes of the gradients is unknown" in verdict and "0.0 % of the activation" not in verdict
    assert "The gradients of 4 tensors were FP16 already (second, first, first.weight, second.weight)" in verdict
    assert f"1200 of {4 * ELEMENTS} elements are exact zeros" in verdict
    assert "Watch a run in FP32 or BF16 to know." in verdict
    assert "From what FP16 has left: Loss scale 2^" in verdict


def test_only_tensors_in_fp32_are_said_to_flush() -> None:
    class Half(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.narrow, self.wide = Scale().half(), Scale()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.wide(self.narrow(x.half()).float())

    model = Half()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        (model(torch.ones(ELEMENTS)) * 2.0**-30).sum().backward()
        optimizer.step()
    assert "flushes 100.0 % of the activation gradients and 100.0 % of the weight gradients" in watched.verdict
    assert "were FP16 already (narrow, narrow.weight)" in watched.verdict


@pytest.mark.parametrize(("dtype", "name"), [(torch.float16, "FP16"), (torch.bfloat16, "BF16")])
def test_updates_that_16_bit_weights_lose_are_told_by_the_weights_that_stay(dtype: torch.dtype, name: str) -> None:
    model = Scale().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        gradient = torch.full((ELEMENTS,), 2.0**-14)  # too small beside weights of 1
        gradient[:100], gradient[900:] = 0.5, 0.0
        (model(torch.ones(ELEMENTS, dtype=dtype)) * gradient.to(dtype)).sum().backward()
        optimizer.step()
    assert f"{name} weights: 800 of 900 with a gradient did not move (88.9 %): keep an FP32 master" in watched.verdict
    assert "would lose" not in watched.verdict


def test_no_update_at_all_is_said_too() -> None:
    model = Scale().half()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)
    with watch(model, 1, optimizer=optimizer) as watched:
        model(torch.ones(ELEMENTS).half()).sum().backward()
        optimizer.step()
    assert "FP16 weights: 1000 of 1000 with a gradient did not move (100.0 %)" in watched.verdict


def test_overflowing_activations_come_first() -> None:
    model = perceptron()
    with torch.no_grad():
        model[0].weight.mul_(1e6)
    watched = watched_step(model)
    counts = {name: found.what_if(1.0).overflow for name, found in watched.histograms("activation").items()}
    assert counts["0"] > counts["1"] > 0
    worst = sorted(
        (name for name in counts if counts[name]), key=lambda name: -counts[name] / found_elements(name, watched)
    )
    assert watched.verdict.split("\n\n")[-1].startswith(
        f"FP16 overflows in the outputs of {len(worst)} of 3 layers, which no loss scale helps: {worst[0]} ("
    )
    assert f"0 ({counts['0']} of 256 elements)" in watched.verdict
    assert "Loss scale 2^" in watched.verdict


def found_elements(name: str, watched: object) -> int:
    return watched.histograms("activation")[name].elements


def test_gradients_that_are_all_infinite_are_said() -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = Scaler(2.0**30, skips={1, 2, 3})
    with watch(model, 1, optimizer=optimizer, scaler=scaler) as watched:
        for _ in range(3):
            optimizer.zero_grad()
            (model(torch.randn(8, 16)).sum() * float("inf")).backward()
            scaler.step(optimizer)
            scaler.update()
    assert watched.verdict.startswith("All gradients are infinite or NaN: the loss scale is too large")


def test_zero_gradients_are_not_absent_ones() -> None:
    assert watched_step(perceptron(), 0.0).verdict.startswith("All gradients are zero.")


def test_a_scaler_that_is_never_updated_is_named() -> None:
    model, scaler = Planted(), Scaler(1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer, scaler=scaler) as watched:
        train(model, optimizer, 5)
    assert watched.steps == 0
    assert "No step has ended: the optimizer made 5, and the scaler that was given was never updated" in watched.verdict


def test_a_scaler_that_is_not_given_is_noticed() -> None:
    model, scaler = Planted(), Scaler(1024.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer) as watched:
        train(model, optimizer, 2, scaler)
    assert watched.verdict.startswith("A GradScaler that was not given scales the loss, by 1024 when last seen")
    assert "Loss scale" not in watched.verdict


def test_pytorchs_own_scaler_is_noticed() -> None:
    model, scaler = perceptron(), torch.amp.GradScaler("cpu", init_scale=4096.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer) as watched:
        scaler.scale(model(torch.randn(8, 16)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert "by 4096 when last seen" in watched.verdict


class Attentive(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(16, 16)
        self.attention = torch.nn.MultiheadAttention(16, 2)
        self.spare = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.inner(x)
        return self.attention(x, x, x)[0]


def test_layers_that_were_never_called_are_listed() -> None:
    watched = watched_step(Attentive())
    assert watched.layers == ["inner", "attention.out_proj", "spare"]
    assert watched.unseen == ["attention.out_proj", "spare"]
    assert "2 of 3 layers were never called: attention.out_proj, spare." in watched.verdict


def test_modules_with_layers_in_them_can_be_included() -> None:
    watched = watched_step(Attentive(), include=["*", "attention"], exclude=["spare*", "*out_proj*"])
    assert watched.layers == ["inner", "attention"] and watched.unseen == []
    assert watched.histograms("activation")["attention"].elements == 8 * 16 + 8 * 8  # with its weights
    assert watched.histograms("activation_gradient")["attention"].elements == 8 * 16
    assert "never called" not in watched.verdict


def test_a_layer_that_is_added_later_is_watched_from_then_on() -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer) as watched:
        model(torch.randn(8, 16)).sum().backward()
        optimizer.step()
        model.append(torch.nn.Linear(4, 2)) if hasattr(model, "append") else model.add_module(
            "3", torch.nn.Linear(4, 2)
        )
        assert watched.unseen == ["3"]  # the step under way began without it
        optimizer.step()
        model(torch.randn(8, 16)).sum().backward()
        optimizer.step()
    assert watched.unseen == [] and watched.histograms("activation")["3"].elements == 16


def test_a_model_that_was_compiled_before_is_said_to_be_unseen() -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="eager")
    compiled(torch.randn(8, 16)).sum().backward()
    optimizer.zero_grad()
    with watch(compiled, 1, optimizer=optimizer) as watched:
        compiled(torch.randn(8, 16)).sum().backward()
        optimizer.step()
    torch._dynamo.reset()
    assert len(watched.unseen) == len(watched.layers) == 3
    assert "3 of 3 layers were never called" in watched.verdict and "torch._dynamo.reset()" in watched.verdict
    assert watched.histogram("weight_gradient").elements > 0


def test_dataclasses_are_looked_into() -> None:
    @dataclasses.dataclass
    class Output:
        logits: torch.Tensor
        hidden: tuple
        note: str = ""

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(16))

        def forward(self, x: torch.Tensor) -> Output:
            return Output(self.weight * x, (x + self.weight,))

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = Layer()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).logits

    assert watched_step(Model()).histograms("activation")["layer"].elements == 2 * 8 * 16


def test_an_optimizer_of_another_model_is_refused() -> None:
    other = torch.optim.SGD(perceptron().parameters(), lr=0.1)
    with pytest.raises(ValueError, match="^watch: optimizer has none of the model's parameters"):
        watch(perceptron(), optimizer=other)


def test_parameters_of_no_optimizer_are_named() -> None:
    model = perceptron()
    optimizer = torch.optim.SGD(model[0].parameters(), lr=0.1)
    with watch(model, 1, optimizer=optimizer) as watched:
        model(torch.randn(8, 16)).sum().backward()
        optimizer.step()
    assert "2 parameters of the model in no optimizer that was given" in watched.verdict
    assert "2.weight, 2.bias." in watched.verdict
    assert set(watched.histograms("update_ratio")) == {"0.weight", "0.bias"}
    assert set(watched.histograms("weight_gradient")) == {"0.weight", "0.bias", "2.weight", "2.bias"}


def test_a_model_that_is_a_layer_is_called_so() -> None:
    model = torch.nn.Linear(16, 4)
    with torch.no_grad():
        model.weight.mul_(1e9)
    assert re.search(r"no loss scale helps: the model \(\d+ of 32 elements\)", watched_step(model).verdict)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scaler": 3}, "watch: scaler=3; give a GradScaler"),
        ({"optimizer": "adam"}, "give an optimizer of PyTorch"),
        ({"include": 5}, "watch: include=5; give a pattern"),
        ({"tensorboard": 5}, "watch: tensorboard=5; give a folder or a SummaryWriter"),
    ],
)
def test_arguments_of_other_types_are_refused(options: dict, message: str) -> None:
    model = perceptron()
    given = {"optimizer": torch.optim.SGD(model.parameters(), lr=0.1), **options}
    with pytest.raises(TypeError, match=message):
        watch(model, **given)
