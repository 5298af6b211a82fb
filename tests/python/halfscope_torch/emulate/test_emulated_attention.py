"""Attention under emulation: known answers of rounded probabilities, and both ways to compute it beside PyTorch's."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import numpy as np

from halfscope import matmul, round
from halfscope.torch import diagnose, emulate
from halfscope.torch.emulate.arithmetic.attention import TiledAttention, parse_attention

pytestmark = pytest.mark.torch


def unrounded(tensor: torch.Tensor, name: str) -> torch.Tensor:
    del name
    return tensor


@pytest.mark.parametrize(("scale", "share"), [(1, 0.8574), (16, 0.0442), (256, 4e-6)])
def test_flushed_share_of_the_probabilities_in_e4m3(scale: float, share: float) -> None:
    """Normal scores below a largest one of 8: exp(s - 8) S is flushed up to 2^-10, a share Phi(8 - 10 ln 2 - ln S)."""
    keys = 400_000
    scores = torch.randn(1, keys, 1, generator=torch.Generator().manual_seed(0))
    scores[0, 0] = 8
    flushed = []

    def count(probabilities: torch.Tensor, name: str) -> torch.Tensor:
        del name
        rounded = round(probabilities, "fp8_e4m3")
        flushed.append(int(((rounded == 0) & (probabilities != 0)).sum()) / keys)
        return rounded

    attention = TiledAttention("fp32_fused", count, unrounded, scale)
    attention.forward(torch.ones(1, 1, 1), scores, torch.ones(1, keys, 1), scale=1.0)
    predicted = 0.5 * math.erfc(-(8 - 10 * math.log(2) - math.log(scale)) / math.sqrt(2))
    assert predicted == pytest.approx(share, rel=0.1)
    assert flushed[0] == pytest.approx(predicted, abs=5 * math.sqrt(predicted / keys))


def mean_error(first: tuple[float, float], rest: float) -> float:
    """In units of the last place of BF16: of P V, rounded, for P with the two elements `first` and six `rest`."""
    values = -(1 + np.random.default_rng(0).random((8, 200_000)))
    values = round(values.astype(np.float32), "bf16")
    probabilities = round(np.array([[*first] + [rest] * 6], np.float32), "bf16")
    exact = (probabilities.astype(np.float64) @ values.astype(np.float64))[0]
    rounded = round(matmul(probabilities, values, order="bf16_tensor_core(hopper)"), "bf16")[0]
    unit = 2.0 ** (np.floor(np.log2(-exact)) - 7)
    return float(((rounded - exact) / unit).mean())


def test_two_keys_at_the_row_maximum_bias_the_output() -> None:
    """With P exactly 1 every second sum is a tie, and a small rest of the same sign sends all ties one way."""
    assert mean_error((1, 1), 2.0**-15) == pytest.approx(-0.234, abs=0.005)
    assert mean_error((1, 1), 0) == pytest.approx(0, abs=0.002)
    assert mean_error((0.83, 0.71), 2.0**-15) == pytest.approx(0, abs=0.002)


class Attention(torch.nn.Module):
    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.project = torch.nn.Linear(16, 48)
        self.is_causal = is_causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).view(*x.shape[:2], 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return mixed.transpose(1, 2).reshape(x.shape)


def gradients(policy: str | None, is_causal: bool, **options: object) -> tuple[list[torch.Tensor], object]:
    torch.manual_seed(0)
    model = Attention(is_causal)
    x = torch.randn(4, 6, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0)
    if policy is None:
        (model(x) ** 2).sum().backward()
        return [parameter.grad for parameter in model.parameters()], None
    with emulate(model, policy, optimizer=optimizer, **options) as emulated:
        (model(x) ** 2).sum().backward()
    return [parameter.grad for parameter in model.parameters()], emulated


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("attention", ["fused", "math", "tiled"])
def test_gradients_without_rounding_are_pytorchs(attention: str, is_causal: bool) -> None:
    exact, _ = gradients(None, is_causal)
    # Formats of 23 bits round nothing here, but everything is computed by the emulation's own products.
    emulated, _ = gradients("fp32", is_causal, attention=attention, order="fp32_fused")
    for ours, theirs in zip(emulated, exact):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_tiled_attention_rounds_the_probabilities_and_math_the_scores_too() -> None:
    _, tiled = gradients("fp16_mixed", False, attention="tiled")
    _, fused = gradients("fp16_mixed", False)
    _, separate = gradients("fp16_mixed", False, attention="math")
    assert set(fused.casts()) == set(tiled.casts())
    assert ("activation", "probabilities") in {(role, name) for role, name in tiled.casts()}
    assert not any("bmm" in name for _, name in tiled.casts())
    assert any("bmm" in name for _, name in separate.casts())


class Heads(torch.nn.Module):
    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.q, self.k, self.v = (torch.nn.Parameter(torch.randn(4, 4, 8, 8)) for _ in range(3))
        self.is_causal = is_causal

    def forward(self) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=self.is_causal)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_tiled_attention_of_16_bits_is_pytorchs_own(kind: torch.dtype, is_causal: bool) -> None:
    """Its fused kernel rounds exp(s - max) to the tensors' type for the second product, and divides by its own sum."""
    torch.manual_seed(0)
    model, gradient = Heads(is_causal).to(kind), torch.randn(4, 4, 8, 8).to(kind)

    def step() -> list[torch.Tensor]:
        model.zero_grad()
        output = model()
        output.backward(gradient)
        return [output.detach(), *(parameter.grad.clone() for parameter in model.parameters())]

    native = step()
    with emulate(model, "fp32", attention="tiled"):
        emulated = step()
    with emulate(model, "fp32", attention="math"):
        separate = step()
    assert torch.equal(emulated[0], native[0])
    for ours, theirs, exact in zip(emulated, native, separate):
        far = (theirs.float() - exact.float()).norm()
        assert (ours.float() - theirs.float()).norm() < far / 4 and far > 0


@pytest.mark.parametrize("text", ["flash", "tiled(3)", "tiled()", "tiled(-2)", "tiled(x", None])
def test_unknown_attention_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"^emulate: attention=.*; give 'fused', 'math', 'tiled', or 'tiled\(S\)'"):
        parse_attention(text)


class Large(torch.nn.Module):
    """Scores far beyond FP16's largest number, dropout and a mask that learns, where they are given."""

    def __init__(self, dropout: float, learns: bool) -> None:
        super().__init__()
        self.project = torch.nn.Linear(16, 48)
        self.bias = torch.nn.Parameter(torch.zeros(6, 6), requires_grad=learns)
        torch.nn.init.normal_(self.project.weight, std=40.0)
        self.dropout = dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).view(*x.shape[:2], 3, 2, 8).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, self.bias, self.dropout)
        return mixed.transpose(1, 2).reshape(x.shape)


@pytest.mark.parametrize("policy", ["fp16_mixed", "autocast_cuda"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("learns", [False, True])
def test_fused_attention_keeps_large_scores(policy: str, dropout: float, learns: bool) -> None:
    """As FP16 autocast on a GPU is finite; separate operations overflow. A dropped mask is that of plain PyTorch."""
    torch.manual_seed(0)
    model, x = Large(dropout, learns), torch.randn(4, 6, 16) * 10
    outputs = []
    for attention in (None, "fused", "math"):
        torch.manual_seed(1)
        if attention is None:
            outputs.append(model(x))
            continue
        with emulate(model, policy, attention=attention, compare_steps=()):
            outputs.append(model(x))
            outputs[-1].sum().backward()
    exact, fused, separate = (output.detach() for output in outputs)
    assert not separate.isfinite().all()
    assert (fused - exact).norm() < 0.02 * exact.norm()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("learns", [False, True])
def test_attention_under_autocast_of_the_script(kind: torch.dtype, learns: bool) -> None:
    """A mask that learns has no fused kernel on a CPU; the script's autocast is not to cast what FP32 computes."""
    torch.manual_seed(0)
    model, x = Large(0.0, learns), torch.randn(4, 6, 16) * 10
    torch.nn.init.normal_(model.bias)
    policy = "autocast_cuda" if kind is torch.float16 else "bf16_mixed"
    with emulate(model, policy, compare_steps=()):
        emulated = model(x)
        emulated.sum().backward()
        with torch.autocast("cpu", kind):
            under = model(x)
        under.sum().backward()
    assert (under.float() - emulated).detach().norm() < 4 * torch.finfo(kind).eps * emulated.norm()


def test_a_diagnosis_has_the_scores_that_were_asked_for() -> None:
    torch.manual_seed(0)
    model, x = Large(0.0, False), torch.randn(4, 6, 16) * 10
    assert diagnose(model, lambda: model(x).sum(), "fp16_mixed").fault is None
    fault = diagnose(model, lambda: model(x).sum(), attention="math").fault
    assert fault is not None and fault.made.operation == "bmm"
