"""Models with a fault of half precision that people have reported, as its victims have them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Victim = tuple[nn.Module, Callable[[], Any], dict[str, Any]]


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


class Masked(nn.Module):
    """Scores of three keys, of which the first row masks all."""

    def __init__(self, mask: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.scores, self.mask = nn.Linear(3, 3), mask

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.mask(self.scores(x), padding), -1)


def _masked(mask: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], bias: float = 0.0) -> Victim:
    model = Masked(mask)
    nn.init.constant_(model.scores.bias, bias)
    padding = torch.tensor([[True, True, True], [False, False, True]])
    return model, lambda: model(_random(2, 3), padding).square().sum(), {}


def mask_fill() -> Victim:
    return _masked(lambda scores, padding: scores.masked_fill(padding, -1e9))


def mask_product() -> Victim:
    return _masked(lambda scores, padding: scores + padding.float() * -1e9)


def mask_minimum() -> Victim:
    def mask(scores: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        return scores + padding.to(scores.dtype) * torch.finfo(scores.dtype).min

    return _masked(mask, bias=-40.0)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up, self.down = (nn.Linear(8, 8, bias=False) for _ in range(3))
        for layer, value in ((self.gate, 300.0), (self.up, 300.0), (self.down, 0.125)):
            layer.weight.data.copy_(torch.eye(8) * value)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.down(functional.silu(self.gate(x)) * self.up(x))
        return functional.rms_norm(y, (8,))


def gated_product() -> Victim:
    model = Gated()
    return model, lambda: model(torch.ones(1, 8)).sum(), {}


class Rotary(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.ones(size // 2))
        self.register_buffer("inverse", 10000 ** (-torch.arange(0, size, 2).float() / size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        phase = torch.outer(torch.arange(x.shape[0]).to(self.inverse.dtype), self.inverse)
        return x * self.p * torch.cos(phase)


def rope_positions() -> Victim:
    model = Rotary(128)
    return model, lambda: model(torch.ones(2049, 64)).mean(), {"format": "bf16"}


class Timestep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Linear(64, 4)
        self.register_buffer("frequencies", torch.exp(-math.log(10000) * torch.arange(64) / 64))

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        return self.mlp(torch.sin(t[:, None] * self.frequencies))


def timestep_bf16() -> Victim:
    model, t = Timestep(), torch.tensor([999.0, 937.0, 833.0, 625.0, 750.0, 998.3897])
    return model, lambda: model(t).square().mean(), {"format": "bf16"}


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, loss: Callable[[], torch.Tensor]) -> Callable[[], Any]:
    def step() -> torch.Tensor:
        optimizer.zero_grad()
        found = loss()
        found.backward()
        optimizer.step()
        return found

    return step


def adam_eps_half() -> Victim:
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.Adam(model.parameters())
    loss = lambda: functional.cross_entropy(model(_random(16, 20)), torch.arange(16) % 5)  # noqa: E731
    return model, _step(model, optimizer, loss), {"format": "fp16_pure", "optimizer": optimizer}


def bf16_weights_stuck() -> Victim:
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5)).bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    inputs = _random(16, 20).bfloat16()
    loss = lambda: functional.cross_entropy(model(inputs).float(), torch.arange(16) % 5)  # noqa: E731
    return model, _step(model, optimizer, loss), {"format": "bf16", "optimizer": optimizer}


class Entropy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.logits = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        p = torch.softmax(self.logits(x) * 40, -1)
        return -(p * torch.log(p + 1e-10)).sum(-1)


def softmax_then_log() -> Victim:
    torch.manual_seed(0)
    model = Entropy()
    return model, lambda: model(_random(8, 4)).mean(), {}


class Rms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.ones(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.p
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def rms_squares() -> Victim:
    model = Rms()
    return model, lambda: model(torch.full((2, 64), 300.0)).mean(), {}


class Normalized(nn.Module):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.encoder, self.eps = nn.Linear(4, 4, bias=False), eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.encoder(x)
        return y / y.norm(dim=-1, keepdim=True).clamp_min(self.eps)


def _normalized(eps: float) -> Victim:
    torch.manual_seed(0)
    model, x = Normalized(eps), torch.cat([_random(3, 4), torch.zeros(1, 4)])
    return model, lambda: model(x).sum(), {}


def normalize_eps() -> Victim:
    return _normalized(1e-12)


def normalize_gradient() -> Victim:
    return _normalized(1e-5)


class Mean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.p).sum(-1) / x.shape[-1]


def half_sum() -> Victim:
    model = Mean()
    return model, lambda: model(torch.full((2, 3), 40000.0)).mean(), {}


def fp16_without_scaler() -> Victim:
    torch.manual_seed(0)
    model, x = nn.Linear(8, 2**10), _random(2**8, 8)
    return model, lambda: (model(x).float() * 1e-3).square().mean(), {}


def lm_head_bf16() -> Victim:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256, bias=False), nn.Linear(256, 4000, bias=False))
    model[1].weight.data.normal_().mul_(0.5)
    model[0].weight.data.normal_().mul_(0.125)
    x = _random(4, 64)
    return model, lambda: functional.cross_entropy(model(x).float(), torch.arange(4)), {"format": "bf16"}


class Poisoned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.bn = nn.Linear(2, 2), nn.BatchNorm1d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.a(x))


def batchnorm_poisoned() -> Victim:
    model, x = Poisoned(), torch.tensor([[1.0, 2.0], [3.0, 9e4], [5.0, 4.0]])
    model.a.weight.data.copy_(torch.eye(2))
    return model, lambda: model(x).square().mean(), {}


class Averaged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 1.1))
        self.register_buffer("average", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.average.mul_(0.999).add_(self.weight.detach(), alpha=0.001)
        return x * self.weight


def ema_stuck() -> Victim:
    model = Averaged()
    return model, lambda: model(torch.ones(2, 4)).mean(), {"format": "bf16"}


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.register_buffer("normalizer", torch.tensor(3072.0).sqrt())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.embed(tokens) * self.normalizer


def gemma_normalizer() -> Victim:
    model = Embedded()
    return model, lambda: model(torch.arange(8)).mean(), {"format": "bf16"}


class Gelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * torch.pow(x, 3))))


def gelu_cubic() -> Victim:
    model = Gelu()
    model.a.weight.data.copy_(torch.eye(4))
    model.a.bias.data.zero_()
    return model, lambda: model(torch.tensor([[1.0, 20.0, 100.0, 200.0]])).mean(), {}


class Rational(nn.Module):
    """A polynomial whose coefficients are kept in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.register_buffer(
            "coefficients", torch.tensor([4.9e-3, 6.4e-4, 1.5e-5, 5.1e-8, -8.6e-11, 2.0e-13, -2.8e-16])
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x).clamp(-9, 9)
        total = x * self.coefficients[0]
        for power in range(1, 7):
            total = total + x ** (2 * power + 1) * self.coefficients[power] * 1e-3
        return total


def fp16_constants() -> Victim:
    torch.manual_seed(0)
    model = Rational()
    return model, lambda: model(_random(4, 4) * 0.3).mean(), {}
