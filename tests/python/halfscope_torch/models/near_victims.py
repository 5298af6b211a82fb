"""Models with faults of half precision that are near those which people have reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from victims import Victim


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


class Behind(nn.Module):
    """A function behind a layer that passes its input on."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor], size: int) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(size, size), function
        self.layer.weight.data.copy_(torch.eye(size))
        self.layer.bias.data.zero_()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.layer(x))


def behind(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, format: str = "fp16") -> Victim:
    model = Behind(function, x.shape[-1])
    return model, lambda: model(x).mean(), {"format": format}


def large_scores() -> Victim:
    return behind(lambda y: torch.softmax((y @ y.transpose(-1, -2)) / 128**0.5, -1) @ y, random(2, 8, 128) * 60)


def running_sum() -> Victim:
    def total(y: torch.Tensor) -> torch.Tensor:
        found = torch.zeros(y.shape[0])
        for place in range(y.shape[-1]):
            found = found + y[:, place]
        return found

    return behind(total, torch.full((1, 600), 1 / 512), "bf16")


def own_mean() -> Victim:
    """Public case 53: the mean of a tool in the tensor's own type."""

    def mean(y: torch.Tensor) -> torch.Tensor:
        found = torch.zeros(y.shape[0])
        for place in range(y.shape[-1]):
            found += y[:, place]
        return found / y.shape[-1]

    return behind(mean, torch.ones(1, 768), "bf16")


def long_cumsum() -> Victim:
    return behind(lambda y: y.flatten().cumsum(-1) / torch.arange(1, 4097), torch.full((64, 64), 30.0))


def variance_of_squares() -> Victim:
    def norm(y: torch.Tensor) -> torch.Tensor:
        mean = y.mean(-1, keepdim=True)
        variance = (y * y).mean(-1, keepdim=True) - mean**2
        return (y - mean) * torch.rsqrt(variance + 1e-5)

    return behind(norm, 100 + random(2, 64) * 0.1)


def norm_of_offset() -> Victim:
    return behind(lambda y: functional.layer_norm(y, (64,)), 1 + random(8, 64) * 1e-4)


def exponential() -> Victim:
    return behind(lambda y: 1 / (1 + torch.exp(-y)), torch.full((2, 8), -12.0))


def own_softplus() -> Victim:
    return behind(lambda y: torch.log(1 + torch.exp(y)), torch.full((2, 8), 12.0))


def own_logsumexp() -> Victim:
    return behind(lambda y: torch.log(torch.exp(y).sum(-1)), torch.full((2, 800), 9.0))


def root_of_zero() -> Victim:
    return behind(lambda y: torch.sqrt((y**2).sum(-1) + 1e-12), torch.cat([random(3, 64), torch.zeros(1, 64)]))


def clamped_probability() -> Victim:
    return behind(lambda y: -torch.log(1 - torch.sigmoid(y).clamp(1e-7, 1 - 1e-7)), torch.full((2, 8), 20.0))


def constant_of_one() -> Victim:
    return behind(lambda y: torch.atanh(torch.tanh(y) * 0.9999), torch.full((2, 8), 9.0))


def log_of_product() -> Victim:
    return behind(lambda y: torch.log(torch.prod(torch.sigmoid(y), -1)), torch.full((2, 64), -0.5))


def residual_sum() -> Victim:
    return behind(lambda y: functional.layer_norm(y + y, (64,)), 4e4 + random(2, 64))


def focal_loss() -> Victim:
    def loss(y: torch.Tensor) -> torch.Tensor:
        p = torch.sigmoid(y)
        return -((1 - p) ** 2) * torch.log(p.clamp(min=1e-8))

    return behind(loss, -20 - random(4, 8).abs())


def summed_squares() -> Victim:
    """An error of pictures, which no root follows."""
    return behind(lambda y: (y**2).sum((-1, -2)), 8 * random(64, 64))


def mask_of_a_power_of_two() -> Victim:
    padding = torch.ones(6, dtype=torch.bool)
    return behind(lambda y: torch.softmax((y @ y.T).masked_fill(padding, -(2.0**30)), -1), random(6, 8))


def equal_rows() -> Victim:
    """A variance of 0, whose eps vanishes before the root."""
    return behind(lambda y: (y - y.mean(0)) / torch.sqrt(y.var(0, unbiased=False) + 1e-10), torch.ones(4, 8))


def summed_loss_in_half() -> Victim:
    """A sum over samples, times a weight of the loss, of a model whose weights have 16 bits."""
    torch.manual_seed(0)
    model, x = nn.Linear(8, 1).half(), random(4096, 8).half()
    return model, lambda: (model(x) ** 2).sum() * 100, {}


def matters_in_root() -> Victim:
    """An eps that would be too large for these numbers."""
    x = torch.cat([random(3, 64) * 3e-4, torch.zeros(1, 64)])
    return behind(lambda y: y / torch.sqrt((y**2).mean(-1, keepdim=True) + 1e-8), x)


def cross_entropy_of_sigmoid() -> Victim:
    model = Behind(torch.sigmoid, 8)
    x = torch.full((2, 8), 12.0)
    return model, lambda: functional.binary_cross_entropy(model(x), torch.zeros(2, 8)), {}


class Product(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def partial_sums() -> Victim:
    """Public case 49: 2048 in FP32, of halves that FP16 does not hold."""
    model = Product(torch.cat([torch.full((2048, 1), 32.0), torch.full((2048, 1), -31.0)]))
    return model, lambda: model(torch.ones(1, 4096)).sum() * 1e-4, {"order": "split_k(2, fp16)"}


def cancelling_parts() -> Victim:
    """Public case 49: 100000 - 99900 of which BF16 makes 0."""
    model, x = Product(torch.tensor([[99840.0], [1280.0], [-99840.0], [-480.0]])), torch.tensor([[1, 0.125, 1, 0.125]])
    return model, lambda: model(x).sum(), {"format": "bf16", "order": "split_k(2, bf16)"}


def own_clipping() -> Victim:
    torch.manual_seed(0)
    model = nn.Linear(256, 256).half()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (model(30 * random(64, 256).half()).float() ** 2).mean() * 16
        loss.backward()
        total = torch.zeros((), dtype=torch.float16)
        for parameter in model.parameters():
            total = total + parameter.grad.norm(2) ** 2
        for parameter in model.parameters():
            parameter.grad.mul_(torch.clamp(1.0 / (total**0.5 + 1e-6), max=1.0))
        optimizer.step()
        return loss

    return model, step, {"optimizer": optimizer}


def accumulated_gradients() -> Victim:
    model: Any = nn.Linear(16, 4).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    inputs = torch.ones(512, 16).bfloat16()

    def step() -> None:
        optimizer.zero_grad()
        for micro in range(512):
            (model(inputs[micro : micro + 1]).float().sum() / 512).backward()
        optimizer.step()

    return model, step, {"format": "bf16", "optimizer": optimizer}


def triangular_mask() -> Victim:
    """A mask that is made once and added, whose first row masks all."""
    return behind(lambda y: torch.softmax(y @ y.T + torch.full((4, 4), -1e9).triu(0), -1), random(4, 8))


def norm_of_large_rows() -> Victim:
    return behind(lambda y: y / torch.linalg.vector_norm(y, dim=-1, keepdim=True), 3e4 + random(2, 64))


def reciprocal_root_of_zero() -> Victim:
    x = torch.cat([random(3, 8), torch.zeros(1, 8)])
    return behind(lambda y: y * torch.rsqrt(y.pow(2).sum(-1, keepdim=True) + 1e-8), x)


def counted_mask() -> Victim:
    """A mean over a mask whose count is infinite, and so is the sum."""
    return behind(lambda y: (y * 1.0).sum() / (y * 0.0 + 1.0).sum(), torch.ones(1024, 128))


def adagrad_in_half() -> Victim:
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.Adagrad(model.parameters())

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(random(16, 20)), torch.arange(16) % 5)
        loss.backward()
        optimizer.step()
        return loss

    return model, step, {"format": "fp16_pure", "optimizer": optimizer}


class CappedHead(nn.Module):
    """Logits by the embedding's own weights, softly capped."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(500, 64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return 30 * torch.tanh((self.embedding(tokens) @ self.embedding.weight.T) / 30)


def capped_head() -> Victim:
    model, tokens = CappedHead(), torch.arange(16)
    return model, lambda: functional.cross_entropy(model(tokens).float(), tokens.flip(0)), {"format": "bf16"}
