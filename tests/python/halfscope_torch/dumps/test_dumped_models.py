"""A Llama of transformers and one written anew with fused products: dumps of both, with and without a fault."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
from torch import nn
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

from doc_blocks import read_blocks
from halfscope import compare_dumps
from halfscope.torch import dump
from recording.source_tree import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
WIDTH, HEADS, GROUPS, SIZE, LAYERS = 64, 4, 2, 16, 3
LAST = "model.layers.2."


class FusedBlock(nn.Module):
    def __init__(self, block: Any) -> None:
        super().__init__()
        attention, mlp = block.self_attn, block.mlp
        self.ln1, self.ln2 = copy.deepcopy(block.input_layernorm), copy.deepcopy(block.post_attention_layernorm)
        self.qkv = _joined(attention.q_proj, attention.k_proj, attention.v_proj)
        self.wo, self.w13, self.w2 = (
            _joined(attention.o_proj),
            _joined(mlp.gate_proj, mlp.up_proj),
            _joined(mlp.down_proj),
        )

    def forward(self, x: Any, base: float) -> Any:
        parts = self.qkv(self.ln1(x)).split([HEADS * SIZE, GROUPS * SIZE, GROUPS * SIZE], -1)
        query, key, value = (part.unflatten(-1, (-1, SIZE)).transpose(1, 2) for part in parts)
        query, key = _turned(query, base), _turned(key, base)
        key, value = (each.repeat_interleave(HEADS // GROUPS, 1) for each in (key, value))
        heads = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.wo(heads.transpose(1, 2).flatten(-2))
        gate, up = self.w13(self.ln2(x)).chunk(2, -1)
        return x + self.w2(functional.silu(gate) * up)


class FusedLlama(nn.Module):
    def __init__(self, model: Any, bases: tuple[float, ...] = (1e4,) * LAYERS) -> None:
        super().__init__()
        self.wte, self.bases = copy.deepcopy(model.model.embed_tokens), bases
        self.h = nn.ModuleList(map(FusedBlock, model.model.layers))
        self.ln_f, self.head = copy.deepcopy(model.model.norm), copy.deepcopy(model.lm_head)

    def forward(self, ids: Any) -> Any:
        x = self.wte(ids)
        for block, base in zip(self.h, self.bases):
            x = block(x, base)
        return self.head(self.ln_f(x))


def _joined(*layers: nn.Linear) -> nn.Linear:
    weight = torch.cat([layer.weight for layer in layers]).detach().clone()
    joined = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    joined.weight.data = weight
    return joined


def _turned(x: Any, base: float) -> Any:
    angles = torch.arange(x.shape[-2])[:, None] * base ** -(torch.arange(0, SIZE, 2) / SIZE)
    angles = torch.cat([angles, angles], -1)
    turned = torch.cat([-x[..., SIZE // 2 :], x[..., : SIZE // 2]], -1)
    return x * angles.cos().to(x.dtype) + turned * angles.sin().to(x.dtype)


def llama(seed: int) -> Any:
    """With weights large enough that each part counts."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=100, hidden_size=WIDTH, intermediate_size=160, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        num_key_value_heads=GROUPS, max_position_embeddings=64, initializer_range=0.15, rms_norm_eps=1e-6,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.add_(torch.randn_like(weight), alpha=0.2)
    return model


def dumped(model: nn.Module, path: Path, seed: int) -> Path:
    ids = torch.randint(100, (2, 12), generator=torch.Generator().manual_seed(seed))
    with torch.no_grad(), dump(model, path):
        model(ids)
    return path


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("type_", [torch.float32, torch.bfloat16])
def test_equal_implementations_are_called_equal(type_: torch.dtype, seed: int, tmp_path: Path) -> None:
    model = llama(seed)
    first = dumped(model, tmp_path / "first.safetensors", seed)
    second = dumped(FusedLlama(model).to(type_), tmp_path / "second.safetensors", seed)
    floor = dumped(copy.deepcopy(model).to(type_), tmp_path / "floor.safetensors", seed)
    found = compare_dumps(first, second, floor=floor if type_ is torch.bfloat16 else None)
    assert found.first is None, found.report
    named = {each.pair.name: each.pair.other for each in found.pairs}
    assert named[f"{LAST}self_attn.k_proj"] == "h.2.qkv[..., 64:96]"
    assert named[f"{LAST}mlp.up_proj.weight"] == "h.2.w13.weight[160:320]"
    assert all(".".join(name.split(".")[2:3]) in other for name, other in named.items() if "layers." in name)


def _with_norm(model: FusedLlama) -> None:
    model.h[1].ln2.variance_epsilon = 3e-1


def _without_a_part(model: FusedLlama) -> None:
    with torch.no_grad():
        model.h[0].wo.weight.mul_(1.0)
    model.h[0].wo.register_forward_hook(lambda module, args, output: output + 0.2)


FAULTS = {
    "base of rope": (lambda model: setattr(model, "bases", (1e4, 5e2, 1e4)), "model.layers.1.self_attn.o_proj"),
    "epsilon of a norm": (_with_norm, "model.layers.1.post_attention_layernorm"),
    "a bias": (_without_a_part, "model.layers.0.self_attn.o_proj"),
}  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("type_", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_difference_is_named(fault: str, type_: torch.dtype, seed: int, tmp_path: Path) -> None:
    model = llama(seed)
    change, wanted = FAULTS[fault]
    other = FusedLlama(model)
    change(other)
    first = dumped(model, tmp_path / "first.safetensors", seed)
    second = dumped(other.to(type_), tmp_path / "second.safetensors", seed)
    floor = dumped(copy.deepcopy(model).to(type_), tmp_path / "floor.safetensors", seed)
    for given in (floor, None) if type_ is torch.float32 else (floor,):
        found = compare_dumps(first, second, floor=given)
        assert found.first is not None
        assert found.first.pair.name == wanted, found.report


def test_modules_that_are_called_twice_have_two_names(tmp_path: Path) -> None:
    layer = nn.Linear(3, 3)
    model = nn.Sequential(layer, nn.ReLU(), layer)
    with dump(model, tmp_path / "d.safetensors", weights=False):
        model(torch.randn(2, 3))
    from safetensors.torch import load_file

    assert sorted(load_file(tmp_path / "d.safetensors")) == ["00000:0", "00001:1", "00002:0#2", "00003:model"]


def test_a_dump_that_cannot_be_written_is_refused_and_an_error_leaves_none(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="d.npz is no file of safetensors"), dump(model, tmp_path / "d.npz"):
        pass
    with pytest.raises(ValueError, match="is no folder"), dump(model, tmp_path / "lost" / "d.safetensors"):
        pass
    with pytest.raises(RuntimeError, match="own"), dump(model, tmp_path / "d.safetensors"):
        raise RuntimeError("the user's own")
    assert not list(tmp_path.iterdir())
    assert not model._forward_hooks


def test_the_page_shows_the_output_of_its_code(tmp_path: Path) -> None:
    code, text = read_blocks(ROOT / "docs/guides/two-implementations.md")[:2]
    (tmp_path / "compare.py").write_text(code.code)
    run = [sys.executable, "compare.py"]
    assert text.code == subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
