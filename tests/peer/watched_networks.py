"""Networks whose watched steps `tools/bench_watch.py` times: perceptrons, and a ResNet-18 for images of 32 x 32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import nn

WIDTHS = (64, 64, 128, 128, 256, 256, 512, 512)  # channels of the residual blocks


class Training(NamedTuple):
    """A network with its optimizer; `loss` computes that of one batch."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss: Callable[[], torch.Tensor]

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()


def perceptron(sizes: Sequence[int], batch: int) -> Training:
    """By the sizes of its layers; with Adam."""
    layers = [part for i, o in pairwise(sizes) for part in (nn.Linear(i, o), nn.ReLU())]
    model = nn.Sequential(*layers[:-1])
    inputs, labels = torch.randn(batch, sizes[0]), torch.randint(sizes[-1], (batch,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    return Training(model, optimizer, lambda: nn.functional.cross_entropy(model(inputs), labels))


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = convolution(inputs, outputs, 3, stride)
        self.second = convolution(outputs, outputs, 3, 1)
        self.relu = nn.ReLU(inplace=True)
        narrows = stride > 1 or inputs != outputs
        self.shortcut = convolution(inputs, outputs, 1, stride) if narrows else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.second(self.relu(self.first(x))) + self.shortcut(x))


def convolution(inputs: int, outputs: int, size: int, stride: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs))


def resnet18(memory_format: torch.memory_format, autocast: bool, batch: int = 16) -> Training:
    """(batch, 3, 32, 32) to ten classes, with AdamW; BF16 by autocast where `autocast`."""
    blocks = [Block(i, o, 1 if i == o else 2) for i, o in zip((64, *WIDTHS), WIDTHS)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTHS[-1], 10)]
    model = nn.Sequential(convolution(3, 64, 3, 1), nn.ReLU(inplace=True), *blocks, *head)
    model = model.to(memory_format=memory_format)
    images = torch.randn(batch, 3, 32, 32).contiguous(memory_format=memory_format)
    labels = torch.randint(10, (batch,))

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16) if autocast else nullcontext():
            return nn.functional.cross_entropy(model(images), labels)

    return Training(model, torch.optim.AdamW(model.parameters()), loss)
