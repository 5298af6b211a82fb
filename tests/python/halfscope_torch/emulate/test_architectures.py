"""Networks of transformers and torchvision at tiny size: each door runs them in every 16-bit policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
from halfscope.torch import diagnose, emulate, lint, watch

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

POLICIES = ("fp16", "bf16", "autocast_cuda")
TOKENS, VOCABULARY = 12, 96
Step = tuple[Any, Callable[[], Any]]
# Names that configurations have for the same size.
SIZES = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "d_model": 32, "n_embd": 32, "embed_dim": 32, "dim": 32,
    "num_hidden_layers": 2, "num_layers": 2, "n_layer": 2, "encoder_layers": 2, "decoder_layers": 2, "n_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "num_heads": 4, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "n_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "intermediate_size": 64, "d_ff": 64,
    "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "ffn_dim": 64, "n_inner": 64, "max_position_embeddings": 64,
    "n_positions": 64, "num_decoder_layers": 2, "word_embed_proj_dim": 32, "embedding_size": 32,
    "type_vocab_size": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "state_size": 8, "max_source_positions": 32,
}  # fmt: skip
CAUSAL = (
    "Llama", "Mistral", "Qwen2", "Qwen3", "Phi", "Phi3", "Olmo2", "Cohere", "Gemma", "Gemma2", "StableLm", "GPT2",
    "GPTNeoX", "Bloom", "Falcon", "OPT", "Mamba", "Rwkv", "Granite", "Starcoder2", "GPTJ", "Mixtral", "Qwen3Moe",
    "Qwen2Moe", "Olmoe", "GptOss",
)  # fmt: skip
MASKED = (
    "Bert", "Roberta", "Electra", "DebertaV2", "ModernBert", "Longformer", "Funnel", "DistilBert", "Albert", "MPNet",
    "ConvBert",
)  # fmt: skip
SEQUENCES = ("T5", "UMT5", "LongT5", "Bart", "MBart", "Pegasus", "MT5", "M2M100")
OWN: dict[str, dict[str, Any]] = {
    "DebertaV2": {"relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8},
    "Longformer": {"attention_window": 4},
    "Funnel": {"block_sizes": [1, 1], "d_head": 8, "d_inner": 64},
    "Falcon": {"new_decoder_architecture": False, "multi_query": True},
    "ModernBert": {"global_attn_every_n_layers": 2, "local_attention": 8},
    "Gemma2": {"sliding_window": 8, "query_pre_attn_scalar": 8},
    "Rwkv": {"attention_hidden_size": 32, "context_length": 64},
    "GPTJ": {"rotary_dim": 4},
    "DistilBert": {"hidden_dim": 64},
    "GptOss": {"sliding_window": 8},
    "Qwen3Moe": {"decoder_sparse_step": 1},
    "Qwen2Moe": {"decoder_sparse_step": 1, "shared_expert_intermediate_size": 32},
}
# Constants of their sources that FP16 does not have: a mask of -1e10, a state that begins at -1e38 in FP32.
BEYOND_FP16 = ("LongT5", "Rwkv")
VISION = (
    "resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "regnet_x_400mf",
)  # fmt: skip


def configuration(name: str) -> Any:
    made = getattr(transformers, f"{name}Config")
    known = made().to_dict()
    found = made(**{key: size for key, size in SIZES.items() if key in known}, **OWN.get(name, {}))
    if name in SEQUENCES:
        found.decoder_start_token_id = 1
    return found


def language_model(name: str) -> Step:
    kind = "CausalLM" if name in CAUSAL else "MaskedLM" if name in MASKED else "Seq2SeqLM"
    model = getattr(transformers, f"AutoModelFor{kind}").from_config(configuration(name))
    model.train(name == "Rwkv")  # whose inference changes its state in place; the others without dropout
    ids = torch.randint(3, VOCABULARY, (2, TOKENS), generator=torch.Generator().manual_seed(1))
    return model, lambda: model(input_ids=ids, labels=ids)


def vision_model(name: str) -> Step:
    model = getattr(torchvision.models, name)(num_classes=5)
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([1, 3])
    return model, lambda: torch.nn.functional.cross_entropy(model(images), labels)


@pytest.mark.parametrize("name", [*CAUSAL, *MASKED, *SEQUENCES, *VISION])
def test_every_door_runs(name: str) -> None:
    torch.manual_seed(0)
    model, loss = vision_model(name) if name in VISION else language_model(name)
    plain = loss() if name in VISION else loss().loss
    assert plain.isfinite()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for policy in POLICIES:
        found = diagnose(model, loss, policy)
        assert "backward pass was not looked at" not in str(found), policy
        assert found.fault is None or name in BEYOND_FP16, (policy, str(found))
        assert not [each for each in found.findings if each.kind == "average"], policy
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        value = loss() if name in VISION else loss().loss
        value.backward()
        optimizer.step()
    assert emulated.first_overflow is None or name in BEYOND_FP16
    assert value.item() == pytest.approx(plain.item(), rel=0.05)
    with watch(model, 1, optimizer=optimizer) as watched:
        (loss() if name in VISION else loss().loss).backward()
        optimizer.step()
    assert watched.steps == 1
    lint(model, optimizer, "fp16")
