"""Small networks whose units have scores: a perceptron of known answers, transformers, convolutions, random ones."""

from __future__ import annotations

import torch
from torch import nn

Tensor = torch.Tensor


class TwoLayers(nn.Module):
    """z = relu(x W1^T) W2^T."""

    def __init__(self, first: Tensor, second: Tensor) -> None:
        super().__init__()
        self.one, self.two = (nn.Linear(*weight.shape[::-1], bias=False) for weight in (first, second))
        with torch.no_grad():
            self.one.weight.copy_(first)
            self.two.weight.copy_(second)

    def forward(self, x: Tensor) -> Tensor:
        return self.two(self.one(x).relu())


def two_layers() -> tuple[TwoLayers, Tensor]:
    """The network, and 256 inputs."""
    torch.manual_seed(0)
    x, first, second = torch.randn(256, 32), torch.randn(64, 32) * 0.2, torch.randn(10, 64) * 0.3
    return TwoLayers(first, second), x


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        shape = (*x.shape[:2], self.heads, -1)
        q, k, v = (layer(x).view(shape).transpose(1, 2) for layer in (self.q, self.k, self.v))
        scores = (q @ k.transpose(-1, -2)) / q.shape[-1] ** 0.5
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.up = Attention(width, heads), nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.first(x))
        return x + self.down(nn.functional.gelu(self.up(self.second(x))))


class Transformer(nn.Module):
    """Tokens (batch, time) to logits (batch, classes), or of each token."""

    def __init__(self, width: int = 32, blocks: int = 2, classes: int = 10, *, of_tokens: bool = False) -> None:
        super().__init__()
        self.embed, self.of_tokens = nn.Embedding(50, width), of_tokens
        self.blocks = nn.ModuleList(Block(width, 2) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        return self.head(x if self.of_tokens else x.mean(1))


def tokens(batches: int, sequences: int, length: int = 12, seed: int = 5) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(50, (sequences, length), generator=generator) for _ in range(batches)]


def plant(model: Transformer, block: int, channels: tuple[int, ...] = (3, 17), factor: float = 64.0) -> None:
    """Channels of a block's first norm times a power of two, and the weights of q, k and v there divided by it."""
    norm, attention = model.blocks[block].first, model.blocks[block].attention
    with torch.no_grad():
        for channel in channels:
            norm.weight[channel] *= factor
            norm.bias[channel] *= factor
            for layer in (attention.q, attention.k, attention.v):
                layer.weight[:, channel] /= factor


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1, groups=2)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.two(self.one(x).relu())


def convolutions(classes: int = 10) -> nn.Module:
    """Images (batch, 3, 9, 9)."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2), nn.ReLU(), Residual(16), nn.ReLU(), nn.Conv2d(16, 32, 3, dilation=1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, classes),
    )  # fmt: skip


def random_network(seed: int) -> tuple[nn.Module, list[Tensor]]:
    """Two to five layers of random widths, scales, activations and residual connections, and four batches."""
    generator = torch.Generator().manual_seed(seed)

    def draw(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=generator))

    torch.manual_seed(seed)
    width, classes, depth = 16 * draw(1, 5), draw(2, 12), draw(1, 5)
    layers: list[nn.Module] = []
    for _ in range(depth):
        activation = (nn.ReLU, nn.GELU, nn.Tanh, nn.Identity)[draw(0, 4)]()
        layer: nn.Module = nn.Sequential(nn.LayerNorm(width) if draw(0, 2) else nn.Identity(),
                                         nn.Linear(width, width), activation)  # fmt: skip
        layers.append(Skipped(layer) if draw(0, 2) else layer)
    model = nn.Sequential(*layers, nn.Linear(width, classes))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight *= 2.0 ** (draw(-4, 5) / 2)
                weight[:, draw(0, width)] *= 2.0 ** draw(0, 4)
    inputs = torch.randn(4, 64, width, generator=generator)
    inputs[..., draw(0, width)] *= 2.0 ** draw(0, 4)
    return model, list(inputs)


class Skipped(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layer(x)
