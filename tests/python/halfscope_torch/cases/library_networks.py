"""Networks of transformers and torchvision at tiny size, with random weights, and the loss of one batch of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torchvision
import transformers

TOKENS, VOCABULARY, CLASSES = 12, 96, 5
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
    "Llama", "Mistral", "Qwen2", "Qwen3", "Phi", "Phi3", "Olmo2", "Cohere", "Gemma", "Gemma2", "Gemma3Text", "StableLm",
    "GPT2", "GPTNeoX", "Bloom", "Falcon", "OPT", "Mamba", "Rwkv", "Granite", "Starcoder2", "GPTJ", "Mixtral",
    "Qwen3Moe", "Qwen2Moe", "Olmoe", "GptOss", "DeepseekV3", "Mamba2", "XLNet",
)  # fmt: skip
MASKED = (
    "Bert", "Roberta", "Electra", "Deberta", "DebertaV2", "ModernBert", "Longformer", "Funnel", "DistilBert", "Albert",
    "MPNet", "ConvBert",
)  # fmt: skip
SEQUENCES = ("T5", "UMT5", "LongT5", "Bart", "MBart", "Pegasus", "MT5", "M2M100")
DEBERTA = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
OWN: dict[str, dict[str, Any]] = {
    "Deberta": DEBERTA,
    "DebertaV2": {**DEBERTA, "position_buckets": 8},
    "Longformer": {"attention_window": 4},
    "Funnel": {"block_sizes": [1, 1], "d_head": 8, "d_inner": 64},
    "Falcon": {"new_decoder_architecture": False, "multi_query": True},
    "ModernBert": {"global_attn_every_n_layers": 2, "local_attention": 8},
    "Gemma2": {"sliding_window": 8, "query_pre_attn_scalar": 8},
    "Gemma3Text": {"sliding_window": 8, "query_pre_attn_scalar": 8},
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
# Classifiers of torchvision by the names of their functions.
CLASSIFIERS = (
    "resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "squeezenet1_1", "regnet_x_400mf", "efficientnet_b0",
    "mnasnet0_5",
)  # fmt: skip
# Sizes of image classifiers of transformers beside those of SIZES.
PYRAMID = {"depths": [1, 1], "embed_dim": 16, "num_heads": [2, 4], "window_size": 4, "patch_size": 4}
IMAGE_OWN: dict[str, dict[str, Any]] = {
    "ViT": {"patch_size": 8},
    "Dinov2": {"patch_size": 8},
    "Swin": PYRAMID,
    "Swinv2": PYRAMID,
    "ConvNext": {"num_stages": 2, "hidden_sizes": [16, 32], "depths": [1, 1]},
}
IMAGES = 32  # pixels along an edge


def normals(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def tokens(*shape: int) -> torch.Tensor:
    return torch.randint(3, VOCABULARY, shape, generator=torch.Generator().manual_seed(1))


def configuration(name: str, **own: Any) -> Any:
    """The configuration `name` with those sizes of SIZES that it has, and its `own`."""
    config = getattr(transformers, f"{name}Config")
    known = config().to_dict()
    return config(**{**{key: size for key, size in SIZES.items() if key in known}, **own})


def language_model(name: str) -> Step:
    kind = "CausalLM" if name in CAUSAL else "MaskedLM" if name in MASKED else "Seq2SeqLM"
    settings = configuration(name, **OWN.get(name, {}))
    if name in SEQUENCES:
        settings.decoder_start_token_id = 1
    model = getattr(transformers, f"AutoModelFor{kind}").from_config(settings)
    model.train(name == "Rwkv")  # whose inference changes its state in place; the others without dropout
    ids = tokens(2, TOKENS)
    return model, lambda: model(input_ids=ids, labels=ids)


def classifier(model: Any) -> Step:
    """Dropout and stochastic depth are drawn alike in each run."""
    images, labels = normals(2, 3, 64, 64), torch.tensor([1, 3])

    def loss() -> torch.Tensor:
        torch.manual_seed(2)
        return torch.nn.functional.cross_entropy(model(images), labels)

    return model, loss


def image_model(name: str) -> Step:
    settings = configuration(name, image_size=IMAGES, num_labels=CLASSES, **IMAGE_OWN[name])
    model = transformers.AutoModelForImageClassification.from_config(settings).eval()
    images, labels = normals(2, 3, IMAGES, IMAGES), torch.tensor([1, 3])
    return model, lambda: model(pixel_values=images, labels=labels)


def masked_autoencoder() -> Step:
    """The patches that are hidden are drawn once."""
    decoder = {"decoder_hidden_size": 32, "decoder_num_attention_heads": 4, "decoder_num_hidden_layers": 1}
    sizes = {"decoder_intermediate_size": 64, "image_size": IMAGES, "patch_size": 8}
    model = transformers.ViTMAEForPreTraining(configuration("ViTMAE", **decoder, **sizes)).eval()
    images, noise = normals(2, 3, IMAGES, IMAGES), normals(2, 16, seed=2)
    return model, lambda: model(pixel_values=images, noise=noise)


def segformer() -> Step:
    sizes = {"num_encoder_blocks": 2, "depths": [1, 1], "sr_ratios": [2, 1], "hidden_sizes": [16, 32]}
    patches = {"patch_sizes": [7, 3], "strides": [4, 2], "num_attention_heads": [1, 2], "mlp_ratios": [2, 2]}
    settings = transformers.SegformerConfig(**sizes, **patches, decoder_hidden_size=32, num_labels=CLASSES)
    model = transformers.SegformerForSemanticSegmentation(settings).eval()
    images = normals(2, 3, IMAGES, IMAGES)
    labels = torch.randint(CLASSES, (2, IMAGES, IMAGES), generator=torch.Generator().manual_seed(3))
    return model, lambda: model(pixel_values=images, labels=labels)


def segment_anything() -> Step:
    """Masks for one point of each image, beside masks drawn at random."""
    vision = transformers.SamVisionConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=IMAGES, patch_size=8, mlp_dim=64,
        output_channels=16, window_size=2, global_attn_indexes=[1], num_pos_feats=8,
    )  # fmt: skip
    prompts = transformers.SamPromptEncoderConfig(
        hidden_size=16, image_size=IMAGES, patch_size=8, image_embedding_size=4, mask_input_channels=4
    )
    masks = transformers.SamMaskDecoderConfig(
        hidden_size=16, mlp_dim=32, num_hidden_layers=2, num_attention_heads=4, iou_head_hidden_dim=16
    )
    model = transformers.SamModel(
        transformers.SamConfig(vision_config=vision, prompt_encoder_config=prompts, mask_decoder_config=masks)
    ).eval()
    images, points = normals(2, 3, IMAGES, IMAGES), torch.full((2, 1, 1, 2), 11.0)
    labels = (normals(2, 1, 3, 16, 16, seed=2) > 0).float()

    def loss() -> torch.Tensor:
        masks = model(pixel_values=images, input_points=points).pred_masks
        return torch.nn.functional.binary_cross_entropy_with_logits(masks, labels)

    return model, loss


def pairs(name: str) -> Step:
    """Images and texts, CLIP's loss and SigLIP's."""
    text = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    vision = {**text, "image_size": IMAGES, "patch_size": 8}
    text = {**text, "vocab_size": VOCABULARY, "max_position_embeddings": TOKENS, "projection_size": 32}
    text |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    settings = getattr(transformers, f"{name}Config")(text_config=text, vision_config=vision)
    model = getattr(transformers, f"{name}Model")(settings).eval()
    ids, images = tokens(3, TOKENS), normals(3, 3, IMAGES, IMAGES)
    return model, lambda: model(input_ids=ids, pixel_values=images, return_loss=True)


def whisper() -> Step:
    settings = configuration("Whisper", decoder_start_token_id=1, num_mel_bins=16, max_target_positions=32)
    model = transformers.WhisperForConditionalGeneration(settings).eval()
    sounds, ids = normals(2, 16, 64), tokens(2, TOKENS)
    return model, lambda: model(input_features=sounds, labels=ids)


def speech(name: str) -> Step:
    """Transcripts by CTC."""
    layers = {"conv_dim": (16, 16), "conv_kernel": (10, 3), "conv_stride": (5, 2), "num_feat_extract_layers": 2}
    places = {"num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4, "mask_time_prob": 0.0}
    model = getattr(transformers, f"{name}ForCTC")(configuration(name, **layers, **places)).eval()
    sounds, ids = normals(2, 800), tokens(2, 6)
    return model, lambda: model(input_values=sounds, labels=ids)


def patched_series() -> Step:
    lengths = {"context_length": 32, "prediction_length": 8, "patch_length": 4, "patch_stride": 4}
    sizes = {"num_input_channels": 2, **lengths}
    model = transformers.PatchTSTForPrediction(configuration("PatchTST", **sizes)).eval()
    past, future = normals(4, 32, 2), normals(4, 8, 2, seed=2)
    return model, lambda: model(past_values=past, future_values=future)


def detr() -> Step:
    """Boxes are matched by the Hungarian method; normalisations are frozen."""
    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1], out_features=["stage2"]
    )
    layers = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    sizes = {"d_model": 32, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "num_queries": 8, "num_labels": CLASSES}
    own = {"backbone": None, "use_timm_backbone": False, "use_pretrained_backbone": False}
    settings = transformers.DetrConfig(backbone_config=backbone, **own, **layers, **sizes)
    model = transformers.DetrForObjectDetection(settings).eval()
    images = normals(2, 3, 64, 64)
    boxes = torch.tensor([[0.5, 0.5, 0.2, 0.3], [0.3, 0.4, 0.1, 0.2]])
    labels = [{"class_labels": torch.tensor([1, 2]), "boxes": boxes} for _ in range(2)]
    return model, lambda: model(pixel_values=images, labels=labels)


def detector(model: Any) -> Step:
    """Proposals are drawn at random, alike in each run; the closure returns the detector's losses."""
    images = list(torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(1)))
    targets = [{"boxes": torch.tensor([[5.0, 5, 40, 40]]), "labels": torch.tensor([1])} for _ in range(2)]

    def losses() -> dict[str, Any]:
        torch.manual_seed(2)
        return dict(model(images, targets))

    return model, losses


def faster_rcnn() -> Step:
    own = {"weights": None, "weights_backbone": None, "num_classes": CLASSES, "min_size": 64, "max_size": 64}
    return detector(torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(**own))


def retina_net() -> Step:
    """Focal loss over all anchors of a feature pyramid of two levels."""
    detection, layers = torchvision.models.detection, torchvision.models.resnet.BasicBlock
    body = torchvision.models.ResNet(layers, [1, 1, 1, 1], num_classes=CLASSES)
    backbone = detection.backbone_utils._resnet_fpn_extractor(body, 5, returned_layers=[3, 4])
    anchors = detection.anchor_utils.AnchorGenerator(((16, 24), (32, 48), (64, 96)), ((0.5, 1.0, 2.0),) * 3)
    return detector(detection.RetinaNet(backbone, CLASSES, 64, 64, anchor_generator=anchors))


def segmenter() -> Step:
    """LR-ASPP of a MobileNet: a class for each pixel."""
    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=CLASSES
    )
    images = normals(2, 3, 64, 64)
    labels = torch.randint(CLASSES, (2, 64, 64), generator=torch.Generator().manual_seed(3))
    return model, lambda: torch.nn.functional.cross_entropy(model(images)["out"], labels)


def video_resnet() -> Step:
    """R3D with one block of each width, for clips of 8 frames."""
    video = torchvision.models.video.resnet
    model = video.VideoResNet(
        video.BasicBlock, [video.Conv3DSimple] * 4, [1, 1, 1, 1], video.BasicStem, num_classes=CLASSES
    )
    clips, labels = normals(2, 3, 8, 32, 32), torch.tensor([1, 3])
    return model, lambda: torch.nn.functional.cross_entropy(model(clips), labels)


def dense_net() -> Step:
    return classifier(torchvision.models.DenseNet(8, (2, 2, 2), 16, num_classes=CLASSES))


def max_vit() -> Step:
    sizes = {"partition_size": 2, "block_channels": [16, 32], "block_layers": [1, 1], "head_dim": 8}
    return classifier(torchvision.models.MaxVit((64, 64), 16, **sizes, stochastic_depth_prob=0.0, num_classes=CLASSES))


OTHERS: dict[str, Callable[[], Step]] = {
    "ViTMAE": masked_autoencoder,
    "Segformer": segformer,
    "Sam": segment_anything,
    "CLIP": lambda: pairs("CLIP"),
    "Siglip": lambda: pairs("Siglip"),
    "Whisper": whisper,
    "Wav2Vec2": lambda: speech("Wav2Vec2"),
    "Hubert": lambda: speech("Hubert"),
    "PatchTST": patched_series,
    "Detr": detr,
    "fasterrcnn": faster_rcnn,
    "retinanet": retina_net,
    "lraspp": segmenter,
    "r3d": video_resnet,
    "densenet": dense_net,
    "maxvit": max_vit,
}
NAMES = (*CAUSAL, *MASKED, *SEQUENCES, *CLASSIFIERS, *IMAGE_OWN, *OTHERS)


def step_of(name: str) -> Step:
    """The network `name` of NAMES, with weights drawn by PyTorch's own generator."""
    if name in OTHERS:
        return OTHERS[name]()
    if name in IMAGE_OWN:
        return image_model(name)
    if name in CLASSIFIERS:
        return classifier(getattr(torchvision.models, name)(num_classes=CLASSES))
    return language_model(name)


def loss_of(output: Any) -> Any:
    """The loss in what a closure returns: itself, the sum of a detector's losses, or its `loss`."""
    if isinstance(output, torch.Tensor):
        return output
    return sum(output.values()) if type(output) is dict else output.loss
