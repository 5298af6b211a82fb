"""Networks of transformers: their units are found, and the rules of a mixture have its KL within `emulate`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
from torch import nn

from halfscope.torch import emulate, sensitivity

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

WORDS, WIDTH, SEQUENCES, LENGTH = 100, 64, 8, 16


def gpt2() -> nn.Module:
    """Weights that lie as (in, out), and a head that shares the embedding's."""
    config = transformers.GPT2Config(vocab_size=WORDS, n_positions=LENGTH, n_embd=WIDTH, n_layer=2, n_head=4)
    return transformers.GPT2LMHeadModel(config)


def llama(**options: object) -> nn.Module:
    config = transformers.LlamaConfig(
        vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, use_cache=False, **options,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def t5() -> nn.Module:
    config = transformers.T5Config(
        vocab_size=WORDS, d_model=WIDTH, d_kv=16, d_ff=2 * WIDTH, num_layers=2, num_heads=4, use_cache=False
    )
    return transformers.T5ForConditionalGeneration(config)


def bert() -> nn.Module:
    config = transformers.BertConfig(
        vocab_size=WORDS, hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=2, num_attention_heads=4
    )
    return transformers.BertForSequenceClassification(config)


def vit() -> nn.Module:
    """Parameters that are added to the tokens: no product has them."""
    config = transformers.ViTConfig(
        hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=2, num_attention_heads=4, image_size=16,
        patch_size=4, num_labels=5,
    )  # fmt: skip
    return transformers.ViTForImageClassification(config)


# By name: the network, the units that are not embeddings, and some of them.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], int, tuple[str, ...]]] = {
    "gpt2": (gpt2, 9, ("transformer.h.0.attn.c_attn", "lm_head")),
    "llama": (llama, 9, ("model.layers.0.self_attn.q_proj + k_proj + v_proj",
                         "model.layers.1.mlp.gate_proj + up_proj")),
    "t5": (t5, 23, ("encoder.block.0.layer.0.SelfAttention.q + k + v",
                    "decoder.block.1.layer.1.EncDecAttention.k + v")),
    "vit": (vit, 10, ("vit.embeddings.patch_embeddings.projection", "classifier")),
    "bert": (bert, 10, ("bert.encoder.layer.0.attention.self.query + key + value", "classifier")),
}  # fmt: skip


def batches(name: str) -> list[dict[str, torch.Tensor]]:
    if name == "vit":
        return [{"pixel_values": torch.randn(SEQUENCES, 3, 16, 16)} for _ in range(2)]
    shape = (SEQUENCES, LENGTH)
    names = ["input_ids", "decoder_input_ids"] if name == "t5" else ["input_ids"]
    return [{each: torch.randint(WORDS, shape) for each in names} for _ in range(2)]


@pytest.mark.parametrize("name", NETWORKS)
def test_rules_of_a_library_network(name: str) -> None:
    make, count, some = NETWORKS[name]
    torch.manual_seed(0)
    model, given = make().eval(), batches(name)
    found = sensitivity(model, given, ["nvfp4", "mxfp8_e4m3"])
    units = [unit for unit in found.units if not found._subject.is_scored_only(unit)]
    assert len(units) == count and set(some) <= set(units), units
    assert "Not scored" not in found.report.about
    chosen = found.choose(bits=6)
    assert next(iter(chosen.exceptions)) == "*"
    total = 0.0
    for batch in given:
        with torch.no_grad():
            reference = model(**batch).logits.double().log_softmax(-1)
            with emulate(model, "fp32", exceptions=chosen.exceptions):
                output = model(**batch).logits.double().log_softmax(-1)
        total += float((reference.exp() * (reference - output)).sum(-1).mean()) / len(given)
    assert total == pytest.approx(chosen.kl, rel=1e-3)


def test_activations_that_are_computed_again() -> None:
    """The scores of a network with activation checkpointing, within round-off, are its scores without."""
    torch.manual_seed(0)
    model, given = llama(), batches("llama")
    once = sensitivity(model, given, ["nvfp4"]).scores
    model.gradient_checkpointing_enable()
    again = sensitivity(model.train(), given, ["nvfp4"]).scores
    assert [each.nats for each in again.values()] == pytest.approx([each.nats for each in once.values()], rel=1e-3)
