"""T5's and Gemma's shapes with planted sizes: every module's output fits FP16, FP32 outputs keep their bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
from torch import nn

from halfscope.torch import rescale

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

WORDS, WIDTH = 100, 32


def t5(kind: str, **sizes: int) -> nn.Module:
    small = {"vocab_size": WORDS, "d_model": WIDTH, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_heads": 2}
    config = transformers.T5Config(**{**small, **sizes}, feed_forward_proj=kind, use_cache=False)
    return transformers.T5ForConditionalGeneration(config).eval()


def gemma(is_tied: bool = False, **sizes: int) -> nn.Module:
    small = {
        "hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "head_dim": 16,
    }  # fmt: skip
    config = transformers.GemmaConfig(
        vocab_size=WORDS, **{**small, **sizes}, use_cache=False, tie_word_embeddings=is_tied
    )
    return transformers.GemmaForCausalLM(config).eval()


def largest(model: nn.Module, batch: dict[str, torch.Tensor]) -> tuple[float, torch.Tensor]:
    """The largest output of a module, and the logits."""
    found = [0.0]

    def look(module: nn.Module, given: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor):
            found.append(float(output.abs().max()))

    hooks = [module.register_forward_hook(look) for module in model.modules()]
    with torch.no_grad():
        logits = model(**batch).logits
    for hook in hooks:
        hook.remove()
    return max(found), logits


PLANTED = {
    "t5 hidden": (lambda: t5("relu"), {"encoder.block.1.layer.1.DenseReluDense.wi": 2.0**22}),
    "t5 residual": (lambda: t5("relu"), {"decoder.block.0.layer.2.DenseReluDense.wi": 2.0**12,
                                         "decoder.block.0.layer.2.DenseReluDense.wo": 2.0**12}),
    "t5 gated": (lambda: t5("gated-gelu"), {"encoder.block.0.layer.1.DenseReluDense.wi_1": 2.0**22}),
    "gemma gated": (gemma, {"model.layers.0.mlp.up_proj": 2.0**24, "model.layers.0.mlp.down_proj": 2.0**-8}),
    "gemma residual": (gemma, {"model.layers.1.mlp.down_proj": 2.0**26}),
}  # fmt: skip


# T5-small's own sizes, and two layers of Gemma-2B's.
T5_SMALL = {"vocab_size": 32128, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_layers": 6, "num_heads": 8}
GEMMA_2B = {"hidden_size": 2048, "intermediate_size": 16384, "num_attention_heads": 8, "head_dim": 256}
LARGE = {
    "t5 hidden": (lambda: t5("relu", **T5_SMALL), {"encoder.block.3.layer.1.DenseReluDense.wi": 2.0**22}),
    "t5 residual": (lambda: t5("relu", **T5_SMALL), {"decoder.block.4.layer.2.DenseReluDense.wi": 2.0**12,
                                                     "decoder.block.4.layer.2.DenseReluDense.wo": 2.0**12}),
    "gemma gated": (lambda: gemma(**GEMMA_2B), PLANTED["gemma gated"][1]),
    "gemma residual": (lambda: gemma(**GEMMA_2B), {"model.layers.1.mlp.down_proj": 2.0**15}),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_planted_sizes_fit(name: str) -> None:
    check(name, *PLANTED[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_planted_sizes_of_whole_networks_fit(name: str) -> None:
    check(name, *LARGE[name])


def check(name: str, make: Callable[[], nn.Module], sizes: dict[str, float]) -> None:
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():
        for layer, size in sizes.items():
            model.get_submodule(layer).weight.mul_(size)
    words = torch.randint(1, WORDS, (2, 8))
    batch = {"input_ids": words, "decoder_input_ids": words} if name.startswith("t5") else {"input_ids": words}
    before, logits = largest(model, batch)
    result = rescale(model, [batch])
    result.apply(model)
    after, moved = largest(model, batch)
    assert before > 65504 and after < 32768 and result.moved
    assert torch.equal(moved.view(torch.int32), logits.view(torch.int32))


HELD = {
    # The gate's activation takes its operand as it is.
    "model.layers.0.mlp.gate_proj": (False, r"'model.layers.0.mlp.gate_proj.* is held by gelu in 'model.layers"),
    # The head has the embedding's weight, and a norm's gain is 1 plus a weight: so the residual is held.
    "model.layers.1.mlp.down_proj": (True, r"'model.layers.1.mlp.down_proj' .* is held by add in 'model.layers.1'"),
}  # fmt: skip


@pytest.mark.parametrize("layer", HELD)
def test_a_fixed_tensor_is_named(layer: str) -> None:
    is_tied, words = HELD[layer]
    torch.manual_seed(0)
    model = gemma(is_tied)
    with torch.no_grad():
        model.get_submodule(layer).weight.mul_(2.0**26)
    with pytest.raises(ValueError, match=words):
        rescale(model, [torch.randint(1, WORDS, (2, 8))])
