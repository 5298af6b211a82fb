"""Keys and values of attention as a unit: predicted nats beside the true KL with rounded caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

import halfscope
from halfscope.torch import sensitivity
from scored_networks import Transformer, tokens, two_layers

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
FORMATS = ("mxfp4", "nvfp4", "mxfp8_e4m3")


class Head(nn.Module):
    """Attention of two heads with a residual; sizes of keys and values by the seed."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embed, self.qkv, self.out = nn.Embedding(50, 32), nn.Linear(32, 96), nn.Linear(32, 10)
        with torch.no_grad():
            self.qkv.weight *= 2.0 ** (seed % 3)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        q, k, v = (each.unflatten(-1, (2, 16)).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(x + y.transpose(1, 2).flatten(2))


def encoder() -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(50, 32), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                         nn.Linear(32, 10))  # fmt: skip


def with_rounded_caches(model: nn.Module, x: Tensor, format: str, number: int, patch: pytest.MonkeyPatch) -> Tensor:
    """number: of the attention whose keys and values are rounded."""
    own: Callable[..., Tensor] = functional.scaled_dot_product_attention
    seen = 0

    def rounding(query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        nonlocal seen
        seen += 1
        if seen == number:
            key, value = (halfscope.round(each.contiguous(), format, axis=-1) for each in (key, value))
        return own(query, key, value, *args, **kwargs)

    with patch.context() as inside, torch.no_grad():
        inside.setattr(functional, "scaled_dot_product_attention", rounding)
        found = model(x)
    assert seen >= number
    return found


def divergence(reference: Tensor, output: Tensor) -> float:
    before, after = (each.double().log_softmax(-1) for each in (reference, output))
    return float((before.exp() * (before - after)).sum(-1).mean())


@pytest.mark.parametrize("seed", range(6))
def test_a_cache_of_a_generated_head(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batches = Head(seed).eval(), tokens(4, 64, seed=seed)
    found = sensitivity(model, batches, FORMATS, kv_cache=True, seed=seed)
    assert found.units == ("embed", "qkv", "kv_cache", "out")
    x = torch.cat(batches)
    with torch.no_grad():
        reference = model(x)
    for format in FORMATS:
        true = divergence(reference, with_rounded_caches(model, x, format, 1, monkeypatch))
        assert found.scores["kv_cache", format].nats == pytest.approx(true, rel=0.4), format


def test_caches_of_an_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's own attention, whose projections are another unit."""
    model, batches = encoder().eval(), tokens(4, 64)
    found = sensitivity(model, batches, FORMATS, kv_cache=True)
    x = torch.cat(batches)
    with torch.no_grad():
        model.train()  # without the fast path, which calls no attention of Python's; there is no dropout
        reference = model(x)
    for number in (1, 2):
        name = f"1.layers.{number - 1}.self_attn:kv_cache"
        assert found.scores[name, "mxfp4"].nats > found.scores[name, "mxfp8_e4m3"].nats > 0
        true = divergence(reference, with_rounded_caches(model, x, "nvfp4", number, monkeypatch))
        assert found.scores[name, "nvfp4"].nats == pytest.approx(true, rel=0.4)
    plain = sensitivity(model, batches, FORMATS)
    caches = {unit for unit in found.units if unit.endswith("kv_cache")}
    assert set(found.units) - caches == set(plain.units) and len(caches) == 2
    for key, score in plain.scores.items():
        assert found.scores[key].nats == pytest.approx(score.nats, rel=1e-6)


def test_caches_are_not_in_a_budget() -> None:
    pytest.importorskip("scipy", reason="SciPy is not installed")
    model = Head(0).eval()
    mixture = sensitivity(model, tokens(4, 32), FORMATS, kv_cache=True).choose(bits=5)
    assert set(mixture.formats) == {"qkv", "out"}
    assert "FP32 stay embed, kv_cache: emulate has no rule for embeddings and caches." in " ".join(
        str(mixture.report).split()
    )


def test_attention_written_out_has_no_cache() -> None:
    torch.manual_seed(0)
    model = Transformer(blocks=1).eval()
    batches = tokens(2, 16)
    assert sensitivity(model, batches, ["mxfp4"], kv_cache=True).units == sensitivity(model, batches, ["mxfp4"]).units


def test_static_scales_are_refused() -> None:
    with pytest.raises(ValueError, match="kv_cache=True has the scale of each tensor; leave out formats with .static"):
        sensitivity(two_layers()[0], [torch.zeros(4, 32)], ["nvfp4+static"], kv_cache=True)
