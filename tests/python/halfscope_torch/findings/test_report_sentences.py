"""Reports of `emulate` and `watch` name the fault that `diagnose` names: its line, its operation, what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

import near_victims
import victims
from halfscope.torch import diagnose, emulate, watch
from halfscope.torch.findings.words import cause

pytestmark = pytest.mark.torch

FORWARD = (
    "mask_fill", "mask_product", "gated_product", "softmax_then_log", "rms_squares", "normalize_eps", "half_sum",
    "exponential", "residual_sum", "own_softplus", "large_scores",
)  # fmt: skip
EMULATED = (*FORWARD, "mask_minimum", "normalize_gradient", "batchnorm_poisoned", "adam_eps_half", "equal_rows")


def case(name: str) -> victims.Victim:
    torch.manual_seed(0)
    found: Callable[[], victims.Victim] = getattr(victims, name, None) or getattr(near_victims, name)
    return found()


def train(model: nn.Module, step: Callable[[], Any], optimizer: Any) -> None:
    loss = step()
    if optimizer is None and loss.requires_grad:
        loss.backward()


def lines(text: str) -> list[str]:
    """The first finding: cause, line of the source, why and sure, each on one line."""
    block = text.split("\n\n")[0]
    return [" ".join(part.split()) for part in block.replace("\n  Now:", "\0").replace("\n  Why:", "\0")
            .replace("\n  Sure:", "\0").split("\0")]  # fmt: skip


def headline(text: str) -> list[str]:
    """Place, operation and what went wrong, without sizes, which differ by their roundings; a watch knows no module."""
    return [part.removesuffix(" of the model") for part in text.split(" (")[0].split(": ")[:3]]


def first_fault(name: str) -> tuple[list[str], str]:
    """Line, operation and kind that a diagnosis of the emulated policy names, and the source there."""
    model, step, options = case(name)
    fault = diagnose(model, step, f"{options.get('format', 'fp16').removesuffix('_pure')}_mixed").fault
    assert fault is not None and fault.made.site is not None
    return headline(f"{fault.made.site}: {cause(fault)}"), fault.made.site.line.text


@pytest.mark.parametrize("name", EMULATED)
def test_a_report_of_an_emulation_names_the_fault_of_a_diagnosis(name: str) -> None:
    model, step, options = case(name)
    optimizer = options.get("optimizer")
    with emulate(model, options.get("format", "fp16"), optimizer=optimizer or ()) as emulated:
        train(model, step, optimizer)
    found = lines(emulated.verdict)
    if optimizer is None:
        place, code = first_fault(name)
        assert headline(found[0]) == place and found[1] == code
        assert found[-1].startswith("seen in step 1; no remedy was tried: print(halfscope.torch.diagnose(model, loss))")
    else:
        assert "infinite or NaN after the update, with finite gradients" in found[0]
        assert "Adam divides by sqrt(v) + eps; eps 1e-08 is 0 in FP16" in found[1]
    assert "First overflow: step 1, " in emulated.verdict


@pytest.mark.parametrize("name", [*FORWARD, "mask_minimum", "triangular_mask", "norm_of_large_rows"])
def test_a_watch_names_the_operation_between_layers(name: str) -> None:
    place, code = first_fault(name)
    model, step, _ = case(name)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer) as watched:
        step().backward()
        optimizer.step()
    found = lines(watched.verdict)
    assert headline(found[0])[:2] == place[:2] and found[1] == code
    assert found[-1].startswith("seen in step 1, in the run's own format, in which it is finite; no remedy was tried")
    assert "between layers, which no loss scale helps: " in watched.verdict


def softmax_of_a_function(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x @ x.transpose(-1, -2), -1)


def test_a_product_in_a_users_function_is_seen() -> None:
    model, step, _ = near_victims.behind(softmax_of_a_function, 200 * near_victims.random(4, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer) as watched:
        step().backward()
        optimizer.step()
    assert "mm (test_report_sentences.py:" in watched.verdict
    assert "return torch.softmax(x @ x.transpose(-1, -2), -1)" in watched.verdict


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_three_doors_name_the_line_of_a_function_in_another_file(is_checkpointed: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    def forward(x: torch.Tensor) -> torch.Tensor:
        return (
            checkpoint(softmax_of_a_function, x, use_reentrant=False) if is_checkpointed else softmax_of_a_function(x)
        )

    line = f"test_report_sentences.py:{softmax_of_a_function.__code__.co_firstlineno + 1}: "
    model, step, _ = near_victims.behind(forward, 200 * near_victims.random(4, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    assert str(diagnose(model, step)).startswith(f"{line}compute in FP32 from `x @ x.transpose(-1, -2)` to ")
    for door in (lambda: watch(model, optimizer=optimizer), lambda: emulate(model, "fp16", optimizer=optimizer)):
        with door() as found:
            step().backward()
            optimizer.step()
        assert headline(found.verdict) == headline(f"{line}mm of the model: a sum of products overflows, of 64 terms")


@pytest.mark.parametrize("bias", [-40.0, 0.0])
def test_a_mask_of_the_own_minimum_makes_infinities_of_scores_far_below_zero(bias: float) -> None:
    """Public case 16: a whole row of scores of -16 and below is NaN in FP16; part of a row is not."""
    model, step, _ = case("mask_minimum")
    nn.init.constant_(model.scores.bias, bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer) as watched:
        step().backward()
        optimizer.step()
    verdict = " ".join(watched.verdict.split())
    if bias:
        assert "an addition overflows: 65545, 1.001 times FP16's largest number" in verdict
        assert "softmax on (inf - inf)" in verdict
    else:
        assert "overflows:" not in verdict and "infinite or NaN" not in verdict


@pytest.mark.parametrize("fill", [-1e9, float("-inf"), torch.finfo(torch.float32).min])
def test_a_mask_that_does_no_harm_is_not_told(fill: float) -> None:
    model = victims.Masked(lambda scores, padding: scores.masked_fill(padding, fill))
    x, padding = torch.randn(2, 3), torch.tensor([[False, True, True], [False, False, True]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer) as watched:
        model(x, padding).square().sum().backward()
        optimizer.step()
    assert "infinite or NaN in" not in watched.verdict
    with emulate(model, "fp16", optimizer=optimizer) as emulated:
        model(x, padding).square().sum().backward()
        optimizer.step()
    assert emulated.first_overflow is None
    if fill != float("-inf"):
        assert "and a softmax made them 0, as FP32's: no fault." in emulated.verdict


def test_a_fault_behind_a_harmless_mask_is_found() -> None:
    model = victims.Masked(lambda scores, padding: (scores.masked_fill(padding, -1e9).softmax(-1) * 300) ** 2)
    x, padding = torch.randn(2, 3), torch.tensor([[False, True, True], [False, False, True]])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with emulate(model, "fp16", optimizer=optimizer) as emulated:
        for _ in range(2):
            model(x, padding).square().sum().backward()
            optimizer.step()
    assert emulated.first_overflow is not None and emulated.first_overflow.step == 1
    assert "a power overflows: 90000" in " ".join(emulated.verdict.split())


def test_a_forward_pass_that_fails_leaves_no_mode_behind() -> None:
    class Fails(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.fails = nn.Linear(2, 2), True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.fails:
                raise KeyError("a batch that is no good")
            return self.a(x)

    model = Fails()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, optimizer=optimizer) as watched:
        with pytest.raises(KeyError):
            model(torch.ones(1, 2))
        assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        model.fails = False
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    assert watched.steps == 1


class Seen(torch.utils._python_dispatch.TorchDispatchMode):
    """Names of operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


class Layers(nn.Module):
    """Layers that run outside of the mode that looks at operations."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.flat = nn.Conv2d(1, 2, 2, bias=False), nn.Flatten()
        self.first, self.relu, self.last = nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2, bias=False)
        for weight in (self.image.weight, self.first.weight, self.last.weight):
            nn.init.constant_(weight, 1.0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.relu(self.first(self.flat(self.image(x)))))


@pytest.mark.parametrize(
    ("layer", "operation", "size", "terms"),
    [("image", "convolution", 2e4, 4), ("first", "addmm", 5e3, 8), ("last", "mm", 1e3, 4)],
)
def test_a_layer_whose_sum_overflows_is_named(layer: str, operation: str, size: float, terms: int) -> None:
    model = Layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer) as watched:
        model(torch.full((1, 1, 3, 3), size)).sum().backward()
        optimizer.step()
    found = " ".join(watched.verdict.split())
    assert f"{operation} of module {layer}: a sum of products overflows, of {terms} terms" in found
    assert "test_report_sentences.py:" in found.partition("Sure:")[0]
    assert "between layers" not in found


def test_a_layer_that_fails_leaves_the_operations_behind_it_seen() -> None:
    model = Layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer) as watched:
        with pytest.raises(RuntimeError):
            model(torch.ones(1, 1, 4, 4))  # too large for the layer behind
        model(torch.full((1, 1, 3, 3), 2e4)).sum().backward()
        optimizer.step()
    assert "convolution of module image" in " ".join(watched.verdict.split())
    with Seen() as seen:
        torch.ones(2) + 1
    assert any("add" in name for name in seen.names)


def test_operations_are_left_alone_where_they_are_not_wanted(capsys: pytest.CaptureFixture) -> None:
    model, step, _ = victims.gated_product()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    with watch(model, optimizer=optimizer, operations=False) as watched:
        step().backward()
        optimizer.step()
    print(watched.report)
    assert "Not looked at: operations between layers, such as products, masks and softmax." in capsys.readouterr().out
    with watch(model, optimizer=optimizer) as watched:
        step().backward()
        optimizer.step()
    print(watched.report)
    assert "Not looked at: operations outside of the model, such as the loss" in capsys.readouterr().out
