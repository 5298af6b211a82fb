"""Networks of other people, with random weights and a loss: small ones of torchvision and transformers, and a U-Net."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Tensor = torch.Tensor
Training = tuple[nn.Module, Callable[[], Tensor]]  # and its loss


def resnet50() -> Training:
    """torchvision's, with bottlenecks of an eighth of their width."""
    import torchvision

    blocks = torchvision.models.resnet
    model = blocks.ResNet(blocks.Bottleneck, [3, 4, 6, 3], num_classes=10, width_per_group=8)
    images, labels = torch.randn(2, 3, 32, 32), torch.tensor([1, 2])
    return model, lambda: nn.functional.cross_entropy(model(images), labels)


class Backbone(nn.Sequential):
    """With the attribute that torchvision's detectors ask for: a number, or one of each map."""

    def __init__(self, out_channels: object, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.out_channels = out_channels


def ssd() -> Training:
    """torchvision's SSD on a small backbone: anchors, matching and its own loss inside of the model."""
    from torchvision.models.detection.anchor_utils import DefaultBoxGenerator
    from torchvision.models.detection.ssd import SSD

    layers = [nn.Conv2d(3, 16, 3, 4, 1), nn.BatchNorm2d(16), nn.ReLU6(), nn.Conv2d(16, 16, 3, 2, 1, groups=16)]
    anchors = DefaultBoxGenerator([[2]], scales=[0.3, 0.6])
    model = SSD(Backbone([16], *layers, nn.Hardswish()), anchors, (64, 64), num_classes=4)
    images = [torch.rand(3, 60, 72), torch.rand(3, 64, 64)]
    target = {"boxes": torch.tensor([[4.0, 4, 40, 40], [20, 20, 50, 60]]), "labels": torch.tensor([1, 3])}
    return model, lambda: sum(model(images, [target, target]).values())


def faster_rcnn() -> Training:
    """torchvision's, with region proposals, their suppression and RoIAlign."""
    from torchvision.models.detection import FasterRCNN
    from torchvision.models.detection.anchor_utils import AnchorGenerator

    body = Backbone(16, nn.Conv2d(3, 16, 3, 4, 1), nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, 2, 1))
    model = FasterRCNN(
        body, None, 64, 64, rpn_anchor_generator=AnchorGenerator(((16, 32),), ((0.5, 1.0),)),
        rpn_pre_nms_top_n_train=30, rpn_post_nms_top_n_train=20, rpn_batch_size_per_image=16,
        box_batch_size_per_image=16, box_head=nn.Sequential(nn.Flatten(), nn.Linear(16 * 49, 32), nn.ReLU()),
        box_predictor=BoxPredictor(),
    )  # fmt: skip
    images = [torch.rand(3, 64, 64)]
    target = {"boxes": torch.tensor([[4.0, 4, 40, 40]]), "labels": torch.tensor([1])}
    return model, lambda: sum(model(images, [target]).values())


class BoxPredictor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.classes, self.boxes = nn.Linear(32, 4), nn.Linear(32, 16)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.classes(x), self.boxes(x)


def bert() -> Training:
    """transformers', with a padded sentence."""
    import transformers

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=100, max_position_embeddings=32, **sizes))
    tokens, mask = torch.randint(100, (2, 16)), torch.ones(2, 16, dtype=torch.long)
    mask[0, 10:] = 0
    return model, lambda: model(input_ids=tokens, attention_mask=mask, labels=tokens).loss


def gpt2() -> Training:
    import transformers

    sizes = {"vocab_size": 100, "n_positions": 32, "n_embd": 32, "n_layer": 2, "n_head": 2}
    config = transformers.GPT2Config(**sizes, bos_token_id=0, eos_token_id=0)
    model = transformers.GPT2LMHeadModel(config)
    tokens = torch.randint(100, (2, 16))
    return model, lambda: model(input_ids=tokens, labels=tokens).loss


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.Module], lengths: list[int] | None) -> None:
        super().__init__()
        self.cells = kind(8, 12, num_layers=2, bidirectional=True, dropout=0.1)
        self.output, self.lengths = nn.Linear(24, 5), lengths

    def forward(self, x: Tensor) -> Tensor:
        if self.lengths is None:
            return self.output(self.cells(x)[0])
        packed = nn.utils.rnn.pack_padded_sequence(x, self.lengths, enforce_sorted=False)
        return self.output(nn.utils.rnn.pad_packed_sequence(self.cells(packed)[0])[0])


def recurrent(kind: type[nn.Module], lengths: list[int] | None = None) -> Training:
    model, steps, labels = Recurrent(kind, lengths), torch.randn(4, 3, 8), torch.randint(5, (12,))
    return model, lambda: nn.functional.cross_entropy(model(steps).flatten(0, 1), labels)


def encoder() -> Training:
    """PyTorch's own, with a padding mask of minus infinities."""
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    model, x = nn.TransformerEncoder(layer, 2), torch.randn(2, 6, 16)
    padding = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    return model, lambda: (model(x, src_key_padding_mask=padding) - x).square().mean()


class Residual(nn.Module):
    """Two convolutions, between them a shift by the time step."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time, self.skip = nn.Linear(16, outputs), nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        hidden = self.conv1(nn.functional.silu(self.norm1(x))) + self.time(nn.functional.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(nn.functional.silu(self.norm2(hidden)))


class Attention(nn.Module):
    """Attention of all pixels with each other, in two heads."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm, self.mix = nn.GroupNorm(4, channels), nn.Conv2d(channels, 3 * channels, 1)
        self.output = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.mix(self.norm(x)).unflatten(1, (3, 2, -1)).flatten(-2).transpose(-1, -2)
        q, k, v = parts.unbind(1)  # (batch, head, pixel, channel)
        if hasattr(nn.functional, "scaled_dot_product_attention"):
            mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        else:
            mixed = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v
        return x + self.output(mixed.transpose(-1, -2).reshape(x.shape))


class UNet(nn.Module):
    """U-Net of a diffusion model."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16))
        self.enter, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.first, self.middle, self.last = Residual(8, 8), Residual(8, 16), Residual(24, 8)
        self.attention, self.leave = Attention(16), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        angles = time[:, None] * torch.exp(-torch.arange(8) / 2)
        t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        skip = self.first(self.enter(x), t)
        hidden = self.attention(self.middle(self.down(skip), t))
        hidden = nn.functional.interpolate(hidden, scale_factor=2.0, mode="nearest")
        return self.leave(nn.functional.silu(self.last(torch.cat([hidden, skip], 1), t)))


def unet() -> Training:
    model, images, noise = UNet(), torch.randn(2, 3, 8, 8), torch.randn(2, 3, 8, 8)
    times = torch.tensor([3.0, 40.0])
    return model, lambda: nn.functional.mse_loss(model(images + noise, times), noise)


OF_PYTORCH: dict[str, Callable[[], Training]] = {
    "lstm": lambda: recurrent(nn.LSTM), "packed lstm": lambda: recurrent(nn.LSTM, [4, 2, 3]),
    "gru": lambda: recurrent(nn.GRU), "packed gru": lambda: recurrent(nn.GRU, [4, 2, 3]),
    "encoder": encoder, "unet": unet,
}  # fmt: skip
OF_OTHERS: dict[str, Callable[[], Training]] = {
    "resnet50": resnet50, "ssd": ssd, "faster_rcnn": faster_rcnn, "bert": bert, "gpt2": gpt2
}  # fmt: skip
