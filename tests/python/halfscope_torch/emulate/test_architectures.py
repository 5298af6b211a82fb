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
Step = tuple[Any, Callable[[], Any]]  # a model, and what returns its loss, or an output that has one
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
    "Qwen2Moe", "Olmoe", "GptOss", "DeepseekV3", "Mamba2", "XLNet",
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
    "DeepseekV3": {
        "num_key_value_heads": 4,
        "n_group": 1,
        "topk_group": 1,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "first_k_dense_replace": 1,
    },
    "Mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 4},
    "XLNet": {"d_head": 8, "d_inner": 64},
}
# Constants of their sources that FP16 does not have: a mask of -1e10, a state that begins at -1e38 in FP32.
BEYOND_FP16 = ("LongT5", "Rwkv")
# A model of BF16 loses much of what running variances near 1 change by, at this momentum of 0.01.
LOSES_STATISTICS = ("mobilenet_v3_small",)
VISION = (
    "resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "regnet_x_400mf",
)  # fmt: skip


def configuration(name: str) -> Any:
    made = getattr(transformers, f"{name}Config")
    known = made().to_dict()
    found = made(**{**{key: size for key, size in SIZES.items() if key in known}, **OWN.get(name, {})})
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


def detr() -> Step:
    """Boxes are matched by the Hungarian method; normalisations are frozen."""
    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"]
    )
    layers = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    sizes = {"d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 8, "num_labels": 5}
    own = {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False}
    settings = transformers.DetrConfig(backbone_config=backbone, **own, **layers, **sizes)
    model = transformers.DetrForObjectDetection(settings).eval()
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    boxes = torch.tensor([[0.5, 0.5, 0.2, 0.3], [0.3, 0.4, 0.1, 0.2]])
    labels = [{"class_labels": torch.tensor([1, 2]), "boxes": boxes} for _ in range(2)]
    return model, lambda: model(pixel_values=images, labels=labels)


def faster_rcnn() -> Step:
    """Proposals are drawn at random, alike in each run; the closure returns its four losses."""
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=5, min_size=64, max_size=64
    )
    images = list(torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)))
    targets = [{"boxes": torch.tensor([[5.0, 5, 40, 40]]), "labels": torch.tensor([1])} for _ in range(2)]

    def losses() -> dict[str, Any]:
        torch.manual_seed(2)
        return dict(model(images, targets))

    return model, losses


DETECTORS = {"Detr": detr, "fasterrcnn": faster_rcnn}


def step_of(name: str) -> Step:
    if name in DETECTORS:
        return DETECTORS[name]()
    return vision_model(name) if name in VISION else language_model(name)


def loss_of(output: Any) -> Any:
    if isinstance(output, torch.Tensor):
        return output
    return sum(output.values()) if type(output) is dict else output.loss


@pytest.mark.parametrize("name", [*CAUSAL, *MASKED, *SEQUENCES, *VISION, *DETECTORS])
def test_every_door_runs(name: str) -> None:
    torch.manual_seed(0)
    model, loss = step_of(name)
    plain = loss_of(loss())
    assert plain.isfinite()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    for policy in POLICIES:
        found = diagnose(model, loss, policy)
        assert "backward pass was not looked at" not in str(found), policy
        kinds = {finding.kind for finding in found.findings}
        is_loss = policy == "bf16" and name in LOSES_STATISTICS and kinds == {"state"}
        assert not kinds or is_loss or name in BEYOND_FP16, (policy, str(found))
    with emulate(model, "fp16_mixed", optimizer=optimizer) as emulated:
        value = loss_of(loss())
        value.backward()
        optimizer.step()
    assert emulated.first_overflow is None or name in BEYOND_FP16
    assert value.item() == pytest.approx(plain.item(), rel=0.05)
    with watch(model, 1, optimizer=optimizer) as watched:
        loss_of(loss()).backward()
        optimizer.step()
    assert watched.steps == 1
    lint(model, optimizer, "fp16")
