"""Emulated numbers beside PyTorch's own 16-bit types, for models that cast, scale or measure by themselves."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

import small_models
from halfscope.torch import GradScaler, emulate, watch

pytestmark = pytest.mark.torch


def sgd(model: nn.Module, lr: float = 0.0) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=lr)


class Wide(nn.Module):
    """FP32 under autocast but for the head."""

    def __init__(self) -> None:
        super().__init__()
        self.p, self.head = nn.Parameter(torch.ones(4)), nn.Linear(4, 2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.rsqrt(x * self.p))


@pytest.mark.parametrize("policy", ["autocast_cuda", "apex_o1"])
def test_autocast_keeps_gradients_of_fp32_operations_in_fp32(policy: str) -> None:
    torch.manual_seed(0)
    model, x = Wide(), torch.full((2, 4), 1e-4)
    with torch.autocast("cpu", torch.float16):
        output = model(x)
    (output.float().sum() * 4096).backward()
    real = model.p.grad.clone()
    model.zero_grad()
    with emulate(model, policy, optimizer=sgd(model)) as emulated:
        (model(x).float().sum() * 4096).backward()
    assert torch.equal(model.p.grad, real)
    assert real.abs().max() > 65504
    assert ("weight_gradient", "p") not in emulated.casts()


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p, self.norm = nn.Parameter(torch.ones(64)), nn.RMSNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x * self.p)


@pytest.mark.parametrize("policy", ["fp16_mixed", "autocast_cuda"])
@pytest.mark.parametrize("value", [255.875, 256.0, 300.0])
def test_rms_norm_squares_in_fp32(policy: str, value: float) -> None:
    x = torch.full((1, 64), value)
    for model, inputs in ((Normed(), x), (Normed().half(), x.half())):
        with emulate(model, policy, optimizer=sgd(model)) as emulated:
            output = model(inputs)
            output.float().sum().backward()
        assert torch.allclose(output.float(), torch.ones(64), rtol=1e-6)
        assert model.norm.weight.grad.float().sub(1).abs().max() < 1e-6
        assert emulated.first_overflow is None


class Casting(nn.Module):
    """A norm in FP32, a softmax in FP32 and a mask of the input's own type, as many models have them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.linear = nn.Parameter(torch.ones(64)), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.linear(x)
        h = x.float()
        h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)
        mask = torch.full((64,), torch.finfo(x.dtype).min, dtype=x.dtype)
        chosen = torch.softmax(torch.where(x > 0, x, mask), -1, dtype=torch.float32)
        return self.weight * h.to(x.dtype), (chosen + 1e-10).log()


@pytest.mark.parametrize("policy", ["fp16_mixed", "bf16"])
def test_a_models_own_casts_are_those_of_its_half_version(policy: str) -> None:
    kind = torch.bfloat16 if policy == "bf16" else torch.float16
    torch.manual_seed(0)
    model, x = Casting(), torch.randn(2, 64) * 40
    model.linear.weight.data *= 40
    half = copy.deepcopy(model).to(kind)
    real = half(x.to(kind))
    with emulate(model, policy, optimizer=sgd(model)) as emulated:
        output = model(x)
        assert output[0].dtype is torch.float32
    step = 2.0**-7 if policy == "bf16" else 2.0**-10
    assert torch.allclose(output[0], real[0].float(), rtol=2 * step)
    assert torch.allclose(output[1], real[1], rtol=2 * step, atol=1e-2 if policy == "fp16_mixed" else 0.5)
    assert emulated.first_overflow is None
    for weights_of_16_bits in ("fp32", policy):
        with emulate(half, weights_of_16_bits, optimizer=sgd(half)):
            again = half(x.to(kind))
        assert torch.allclose(again[0].float(), real[0].float(), rtol=2 * step)


def trained_llama(policy: str, **options: Any) -> tuple[float, str]:
    """The loss of the second step, and the report."""
    pytest.importorskip("transformers")
    torch.manual_seed(0)
    model, loss = small_models.llama()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with emulate(model, policy, optimizer=optimizer, **options) as emulated:
        for _ in range(2):
            optimizer.zero_grad()
            found = loss()
            found.backward()
            optimizer.step()
    return found.item(), emulated.verdict


def test_fp8_for_everything_is_told_of_the_layers_that_it_is_for() -> None:
    loss, verdict = trained_llama("fp8_e4m3")
    assert loss != loss
    rules = {
        "*proj": {
            "weight": "fp8_e4m3", "activation": "fp8_e4m3", "activation_gradient": "fp8_e5m2", "weight_gradient": "bf16"
        }
    }  # fmt: skip
    assert f"""emulate(model, "bf16", exceptions={json.dumps(rules)})""" in verdict
    loss, verdict = trained_llama("bf16", exceptions=rules)
    assert loss < 4.2 and "Nothing overflowed." in verdict and "is a format of the operands" not in verdict


def test_names_are_those_of_the_source_and_not_of_kernels() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    class Inline(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.softmax(torch.relu(self.inner(x)).to(torch.float32), -1)

    whole = Inline()
    with emulate(whole, "fp16", optimizer=optimizer) as emulated:
        whole(torch.randn(2, 4)).square().sum().backward()
        optimizer.step()
    names = {name for _, name in emulated.casts()}
    assert {"inner.0", "relu"} <= names
    assert not any(name.endswith("_backward") or "_backward_data" in name or "_to_copy" in name for name in names)


class TypedGradient(nn.Module):
    """Names the type of a gradient in its forward pass, as fully_shard does for the parameters that it gathers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.weight.grad_dtype = torch.float32
        return x * self.weight


@pytest.mark.skipif(not hasattr(torch.Tensor, "grad_dtype"), reason="this PyTorch has no Tensor.grad_dtype")
def test_the_type_of_a_gradient_is_named_of_the_tensor_itself() -> None:
    model = TypedGradient()
    with emulate(model, "fp16_mixed", optimizer=torch.optim.SGD(model.parameters(), lr=0.0)):
        model(torch.full((4,), 3.0)).sum().backward()
    assert torch.equal(model.weight.grad, torch.full((4,), 3.0))


def test_a_checkpointed_cast_is_recomputed_as_it_was() -> None:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Casting()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = checkpoint(lambda y: self.inner(y)[0], x, use_reentrant=False)
            return out

    torch.manual_seed(0)
    model, x = Checkpointed(), torch.randn(2, 64) * 200
    plain = copy.deepcopy(model.inner)
    gradients = []
    for each, call in ((model, lambda: model(x)), (plain, lambda: plain(x)[0])):
        with emulate(each, "fp16_mixed", optimizer=sgd(each)):
            call().sum().backward()
        gradients.append([parameter.grad for parameter in each.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients))


def test_complex_numbers_are_rounded_in_both_parts() -> None:
    class Rotary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            turned = torch.view_as_complex(self.linear(x).view(-1, 4, 2)) * torch.polar(
                torch.ones(4), torch.arange(4.0)
            )
            return torch.view_as_real(turned).flatten(1)

    model = Rotary()
    with emulate(model, "fp16_mixed", optimizer=sgd(model)) as emulated:
        output = model(torch.randn(3, 8))
        output.sum().backward()
    assert torch.equal(output, output.half().float())
    assert emulated.casts()["activation", "mul"].elements == 3 * 8
    assert ("activation_gradient", "mul.input") in emulated.casts()


def test_a_real_result_of_complex_numbers_is_rounded() -> None:
    class Spectrum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_complex(x).abs()

    spectrum, x = Spectrum(), torch.randn(3, 8, 2).half().float()
    with emulate(spectrum, "fp16") as emulated, torch.no_grad():
        output = spectrum(x)
    assert torch.equal(output, torch.hypot(*x.double().unbind(-1)).half().float())
    assert emulated.casts()["activation", "abs"].elements == 24


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_an_evaluation_is_counted_where_nothing_is_trained(context: Callable) -> None:
    model = nn.Sequential(nn.Linear(4, 4))
    model[0].weight.data.fill_(1e4)
    with context(), emulate(model, "fp16_mixed") as emulated:
        model(torch.full((2, 4), 100.0))
    assert emulated.first_overflow.tensor == "0"
    assert emulated.casts()["activation", "0"].overflow == 8
    assert emulated.verdict.split("\n\n")[-1].startswith("Evaluation under fp16_mixed: ")
    model[0].weight.data.fill_(0.1)
    optimizer = sgd(model)
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        with torch.no_grad():
            model(torch.ones(100, 4))
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    assert emulated.casts()["activation", "0"].elements == 8  # the training's alone


@pytest.mark.parametrize("kind", ["buffer", "parameter"])
def test_a_stored_number_without_axes_is_rounded(kind: str) -> None:
    class Normalizer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            root = torch.tensor(3072.0).sqrt()
            self.register_buffer("root", root) if kind == "buffer" else setattr(self, "root", nn.Parameter(root))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.root

    with torch.no_grad(), emulate(Normalizer(), "fp16_mixed"):
        pass
    model = Normalizer()
    with torch.no_grad(), emulate(model, "fp16_mixed"):
        assert model(torch.tensor([11.0])).item() == 610  # 11 * 55.4375; 609.5 from the unrounded root


def test_tiled_attention_shares_heads_among_queries() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query = nn.Linear(8, 8)

        def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
            return functional.scaled_dot_product_attention(self.query(q), k, k, enable_gqa=True)

    torch.manual_seed(0)
    model, q = Attention(), torch.randn(1, 4, 3, 8)
    found = []
    for attention in ("math", "tiled"):
        k = torch.randn(1, 2, 3, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
        with emulate(model, "fp16_mixed", attention=attention):
            output = model(q, k)
            output.sum().backward()
        found.append((output.detach(), k.grad))
    for math, tiled in zip(*found):
        assert torch.allclose(math, tiled, rtol=1e-2, atol=1e-2)


def test_weights_of_16_bits_count_what_did_not_move() -> None:
    torch.manual_seed(0)
    model = nn.Linear(20, 5).bfloat16()
    optimizer = sgd(model, 1e-6)
    with emulate(model, "fp32", optimizer=optimizer) as emulated:
        model(torch.randn(64, 20).bfloat16()).float().sum().backward()
        optimizer.step()
    assert "BF16 weights: " in emulated.verdict
    assert "did not move (" in emulated.verdict
    assert "keep an FP32 master copy" in emulated.verdict
    assert ("master_weight", "weight") in emulated.casts()


def test_stochastic_rounding_needs_no_master_copy() -> None:
    model = nn.Linear(20, 5)
    optimizer = sgd(model, 1e-4)
    roles = {"weight": "bf16/stochastic", "master_weight": "bf16/stochastic", "activation": "bf16"}
    with emulate(model, roles, optimizer=optimizer) as emulated:
        model(torch.randn(64, 20)).sum().backward()
        optimizer.step()
    assert "stochastic rounding makes up for these on average." in emulated.verdict
    assert "master copy" not in emulated.verdict


def test_a_scaler_asserts_where_no_parameter_has_a_gradient() -> None:
    """As torch.amp.GradScaler does; public case 52."""
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    first, second = torch.optim.SGD([a], lr=0.1), torch.optim.SGD([b], lr=0.1)
    scaler = GradScaler("dynamic", initial_scale=8.0)
    scaler.scale((a * 2).sum()).backward()
    scaler.step(first)
    with pytest.raises(AssertionError, match="none of the 1 parameters of this SGD has a gradient"):
        scaler.step(second)
    scaler.update()
    assert (a.item(), b.item(), scaler.get_scale()) == (pytest.approx(0.8), 1, 8)


class Scaled(nn.Module):
    """A weight whose gradient is 3 S, in the type that is given."""

    def __init__(self, kind: torch.dtype) -> None:
        super().__init__()
        self.w, self.kind = nn.Parameter(torch.ones(1)), kind

    def forward(self) -> torch.Tensor:
        return (self.w.to(self.kind) * 3.0).float()


def watched_steps(kind: torch.dtype, steps: int) -> tuple[object, GradScaler]:
    model = Scaled(kind)
    optimizer, scaler = sgd(model), GradScaler("dynamic")
    with watch(model, every=1, optimizer=optimizer, scaler=scaler) as watched:
        for _ in range(steps):
            optimizer.zero_grad()
            scaler.scale(model().sum()).backward()
            scaler.step(optimizer)
            scaler.update()
    return watched, scaler


def test_the_trace_calls_an_fp32_gradient_beyond_fp16_finite() -> None:
    watched, scaler = watched_steps(torch.float32, 3)
    assert scaler.get_scale() == 65536  # no step was skipped
    gradients = [line["gradients"] for line in watched.trace()]
    assert [line["finite"] for line in gradients] == [True, True, True]
    assert [line["would_overflow"] for line in gradients] == [1, 1, 1]


def test_what_a_large_scale_made_infinite_is_not_there_before_any_scale() -> None:
    watched, _ = watched_steps(torch.float16, 4)
    assert "before any scale" not in watched.verdict


def test_an_infinite_input_is_no_fault_of_the_format() -> None:
    model = nn.Linear(2, 2)
    optimizer = sgd(model)
    with watch(model, optimizer=optimizer) as watched:
        model(torch.tensor([[float("inf"), 1.0]])).sum().backward()
        optimizer.step()
    assert watched.verdict.startswith(
        "Outputs are infinite or NaN in the run's own format, before any cast to FP16: the model (2 of 2)."
    )
    assert "FP16 overflows" not in watched.verdict


@pytest.mark.parametrize("how", ["half", "autocast"])
def test_an_overflow_of_16_bits_is_seen_under_the_fp32_policy(how: str) -> None:
    model, x = nn.Sequential(nn.Linear(4, 4)), torch.ones(2, 4)
    model[0].weight.data.fill_(60000.0)
    if how == "half":
        model, x = model.half(), x.half()
    autocast = torch.autocast("cpu", torch.float16, enabled=how == "autocast")
    with emulate(model, "fp32", optimizer=sgd(model)) as emulated, autocast:
        model(x).float().sum().backward()
    first = emulated.first_overflow
    assert first is not None and (first.tensor, first.overflow) == ("0", 8)
