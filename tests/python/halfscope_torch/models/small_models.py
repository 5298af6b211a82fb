"""Small models of kinds that people train, with a batch each, for parity with PyTorch's own 16-bit training."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Loss = Callable[[], torch.Tensor]


def tokens() -> torch.Tensor:
    return torch.randint(64, (4, 16), generator=torch.Generator().manual_seed(1))


def llama() -> tuple[nn.Module, Loss]:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, attn_implementation="eager",
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    return model, lambda: _next_token(model(tokens()).logits)


def gpt2() -> tuple[nn.Module, Loss]:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        attn_implementation="eager",
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    return model, lambda: _next_token(model(tokens()).logits)


def vit() -> tuple[nn.Module, Loss]:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=16, patch_size=4,
        num_labels=5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, attn_implementation="eager",
    )  # fmt: skip
    model = ViTForImageClassification(config)
    return model, lambda: _labels(model(pixel_values=images().to(model.dtype)).logits)


class UNet(nn.Module):
    """A convolution down, one across and one up again, with group norms and a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.norm = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.GroupNorm(2, 8)
        self.across = nn.Conv2d(8, 8, 3, padding=1)
        self.up, self.head = nn.ConvTranspose2d(8, 8, 2, stride=2), nn.Conv2d(11, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.silu(self.norm(self.down(x)))
        y = nn.functional.interpolate(y + self.across(y), scale_factor=1.0, mode="bilinear")
        out: torch.Tensor = self.head(torch.cat([x, self.up(y)], 1))
        return out


def unet() -> tuple[nn.Module, Loss]:
    model = UNet()
    return model, lambda: (model(images().to(next(model.parameters()).dtype)).float() - images()).square().mean()


def encoder() -> tuple[nn.Module, Loss]:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(32, 5))
    inputs = torch.randn(4, 8, 32, generator=torch.Generator().manual_seed(1))
    return model, lambda: _labels(model(inputs.to(next(model.parameters()).dtype)).mean(1))


def images() -> torch.Tensor:
    return torch.randn(4, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def _next_token(logits: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), tokens()[:, 1:].flatten())


def _labels(logits: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.float(), torch.arange(4))


MODELS = {"llama": llama, "gpt2": gpt2, "vit": vit, "unet": unet, "encoder": encoder}
NEED_TRANSFORMERS = ("llama", "gpt2", "vit")
