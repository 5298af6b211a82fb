"""GoogLeNet and Inception of sim/models written for PyTorch; torch_image_networks has them in its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import nn
from torch.nn import functional

from torch_classifier_parts import CLASSES, Logits, flat, narrow

Kernel = tuple[int, int]


@dataclass
class Filter:
    """Published channels; padded to the size of its input over the stride unless `padding` says otherwise."""

    out: int
    kernel: Kernel = (1, 1)
    stride: int = 1
    padding: Kernel | None = None


class ActiveConvolution(nn.Conv2d):
    """A convolution with a batch norm or a bias, and ReLU."""

    def __init__(self, channels: int, of: Filter, normed: bool) -> None:
        padding = (of.kernel[0] // 2, of.kernel[1] // 2) if of.padding is None else of.padding
        super().__init__(channels, narrow(of.out), of.kernel, of.stride, padding, bias=not normed)
        if normed:
            self.bn = nn.BatchNorm2d(self.out_channels)
        self.normed = normed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = super().forward(x)
        return torch.relu(self.bn(y) if self.normed else y)


@dataclass
class BranchOf:
    """Convolutions behind a pool, if any, then others side by side."""

    chain: Sequence[Filter] = ()
    ends: Sequence[Filter] = ()
    pool: nn.Module = field(default_factory=nn.Identity)


class Branch(nn.Module):
    def __init__(self, channels: int, of: BranchOf, normed: bool) -> None:
        super().__init__()
        self.pool, self.chain, self.ends = of.pool, len(of.chain), len(of.ends)
        for i, one in enumerate(of.chain, 1):
            self.add_module(f"conv{i}", ActiveConvolution(channels, one, normed))
            channels = narrow(one.out)
        for i, one in enumerate(of.ends, 1):
            self.add_module(f"end{i}", ActiveConvolution(channels, one, normed))
        self.channels = sum(narrow(one.out) for one in of.ends) if of.ends else channels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(x)
        for i in range(self.chain):
            x = getattr(self, f"conv{i + 1}")(x)
        return torch.cat([getattr(self, f"end{i + 1}")(x) for i in range(self.ends)], dim=1) if self.ends else x


class Inception(nn.Module):
    def __init__(self, channels: int, branches: Sequence[BranchOf], normed: bool) -> None:
        super().__init__()
        self.count = len(branches)
        for i, of in enumerate(branches, 1):
            self.add_module(f"branch{i}", Branch(channels, of, normed))
        self.channels = sum(getattr(self, f"branch{i + 1}").channels for i in range(self.count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([getattr(self, f"branch{i + 1}")(x) for i in range(self.count)], dim=1)


def before_head() -> nn.AvgPool2d:
    return nn.AvgPool2d(5, 3, ceil_mode=True, count_include_pad=False)


class AuxiliaryHead(nn.Module):
    """An auxiliary head of GoogLeNet, on maps of 7x7, which its pool makes 2x2."""

    def __init__(self, channels: int, normed: bool, dropout: float) -> None:
        super().__init__()
        self.pool, self.drop = before_head(), nn.Dropout(dropout)
        self.conv = ActiveConvolution(channels, Filter(128), normed)
        self.fc1, self.fc2 = nn.Linear(4 * narrow(128), narrow(1024)), nn.Linear(narrow(1024), CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.drop(torch.relu(self.fc1(flat(self.conv(self.pool(x)))))))


class GoogLeNet(nn.Module):
    """Szegedy et al., CVPR 2015."""

    MODULES: ClassVar = {
        "3a": (64, 96, 128, 16, 32, 32), "3b": (128, 128, 192, 32, 96, 64),
        "4a": (192, 96, 208, 16, 48, 64), "4b": (160, 112, 224, 24, 64, 64), "4c": (128, 128, 256, 24, 64, 64),
        "4d": (112, 144, 288, 32, 64, 64), "4e": (256, 160, 320, 32, 128, 128),
        "5a": (256, 160, 320, 32, 128, 128), "5b": (384, 192, 384, 48, 128, 128),
    }  # fmt: skip

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1 = ActiveConvolution(1, Filter(64, (3, 3)), False)
        self.conv2_reduce = ActiveConvolution(8, Filter(64), False)
        self.conv2 = ActiveConvolution(8, Filter(192, (3, 3)), False)
        channels = narrow(192)
        for name, (one, to3, three, to5, five, pooled) in self.MODULES.items():
            branches = (
                BranchOf([Filter(one)]),
                BranchOf([Filter(to3), Filter(three, (3, 3))]),
                BranchOf([Filter(to5), Filter(five, (5, 5))]),
                BranchOf([Filter(pooled)], pool=nn.MaxPool2d(3, 1, padding=1)),
            )
            module = Inception(channels, branches, False)
            self.add_module(f"inception{name}", module)
            channels = module.channels
            if name in ("4a", "4d"):
                head = AuxiliaryHead(channels, False, 0.7 if dropout else 0.0)
                self.add_module("aux1" if name == "4a" else "aux2", head)
        self.fc, self.drop = nn.Linear(channels, CLASSES), nn.Dropout(dropout)
        self.pool, self.norm = nn.MaxPool2d(3, 2, ceil_mode=True), nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=1)

    def forward(self, images: torch.Tensor) -> Logits:
        x = self.norm(self.pool(self.conv1(images)))
        x = self.norm(self.conv2(self.conv2_reduce(x)))
        heads = []
        for name in self.MODULES:
            x = getattr(self, f"inception{name}")(x)
            if name in ("4a", "4d"):
                heads.append((self.aux1 if name == "4a" else self.aux2)(x))
            if name in ("3b", "4e"):
                x = self.pool(x)
        return [self.fc(self.drop(x.mean(dim=(2, 3)))), *heads]


class InceptionV2(nn.Module):
    """Ioffe & Szegedy, ICML 2015."""

    MODULES: ClassVar = {  # 1x1; 3x3 and what is before it; both of the double 3x3 and what is before; behind the pool
        "3a": (64, 64, 64, 64, 96, 32), "3b": (64, 64, 96, 64, 96, 64), "3c": (0, 128, 160, 64, 96, 0),
        "4a": (224, 64, 96, 96, 128, 128), "4b": (192, 96, 128, 96, 128, 128), "4c": (160, 128, 160, 128, 160, 128),
        "4d": (96, 128, 192, 160, 192, 128), "4e": (0, 128, 192, 192, 256, 0),
        "5a": (352, 192, 320, 160, 224, 128), "5b": (352, 192, 320, 192, 224, 128),
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = ActiveConvolution(1, Filter(64, (3, 3)), True)
        self.conv2_reduce = ActiveConvolution(8, Filter(64), True)
        self.conv2 = ActiveConvolution(8, Filter(192, (3, 3)), True)
        channels = narrow(192)
        for name, (one, to3, three, to33, twice, pooled) in self.MODULES.items():
            stride = 1 if one else 2
            branches = [
                BranchOf([Filter(to3), Filter(three, (3, 3), stride)]),
                BranchOf([Filter(to33), Filter(twice, (3, 3)), Filter(twice, (3, 3), stride)]),
            ]
            if one:
                pool = nn.MaxPool2d(3, 1, padding=1) if name == "5b" else nn.AvgPool2d(3, 1, padding=1)
                branches = [BranchOf([Filter(one)]), *branches, BranchOf([Filter(pooled)], pool=pool)]
            else:
                branches.append(BranchOf(pool=nn.MaxPool2d(3, 2, padding=1)))
            module = Inception(channels, branches, True)
            self.add_module(f"inception{name}", module)
            channels = module.channels
            if name in ("4a", "4d"):
                self.add_module("aux1" if name == "4a" else "aux2", AuxiliaryHead(channels, True, 0.0))
        self.fc = nn.Linear(channels, CLASSES)

    def forward(self, images: torch.Tensor) -> Logits:
        x = functional.max_pool2d(self.conv1(images), 3, 2, padding=1)
        x = self.conv2(self.conv2_reduce(x))
        heads = []
        for name in self.MODULES:
            x = getattr(self, f"inception{name}")(x)
            if name in ("4a", "4d"):
                heads.append((self.aux1 if name == "4a" else self.aux2)(x))
        return [self.fc(x.mean(dim=(2, 3))), *heads]


def _averaged(out: int) -> BranchOf:
    return BranchOf([Filter(out)], pool=nn.AvgPool2d(3, 1, padding=1))


def _largest_maps(pooled: int) -> list[BranchOf]:
    double = [Filter(64), Filter(96, (3, 3)), Filter(96, (3, 3))]
    return [BranchOf([Filter(64)]), BranchOf([Filter(48), Filter(64, (5, 5))]), BranchOf(double), _averaged(pooled)]


def _middle_maps(n: int) -> list[BranchOf]:
    row, column = (1, 7), (7, 1)
    once = [Filter(n), Filter(n, row), Filter(192, column)]
    twice = [Filter(n), Filter(n, column), Filter(n, row), Filter(n, column), Filter(192, row)]
    return [BranchOf([Filter(192)]), BranchOf(once), BranchOf(twice), _averaged(192)]


def _smallest_maps() -> list[BranchOf]:
    ends = [Filter(384, (1, 3)), Filter(384, (3, 1))]
    split = [BranchOf([Filter(384)], ends), BranchOf([Filter(448), Filter(384, (3, 3))], ends)]
    return [BranchOf([Filter(320)]), *split, _averaged(192)]


class InceptionV3(nn.Module):
    """Szegedy et al., CVPR 2016, with the borders kept and the stem without stride."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        three, pool = (3, 3), BranchOf(pool=nn.MaxPool2d(3, 2, padding=1))
        channels = 1
        stem = (Filter(32, three), Filter(32, three), Filter(64, three), Filter(80), Filter(192, three))
        for i, of in enumerate(stem, 1):
            self.add_module(f"conv{i}", ActiveConvolution(channels, of, True))
            channels = narrow(of.out)
        first = [BranchOf([Filter(384, three, 2)]), BranchOf([Filter(64), Filter(96, three), Filter(96, three, 2)])]
        rows = [Filter(192), Filter(192, (1, 7)), Filter(192, (7, 1)), Filter(192, three, 2)]
        second = [BranchOf([Filter(192), Filter(320, three, 2)]), BranchOf(rows)]
        modules = {
            "mixed5b": _largest_maps(32), "mixed5c": _largest_maps(64), "mixed5d": _largest_maps(64),
            "mixed6a": [*first, pool], "mixed6b": _middle_maps(128), "mixed6c": _middle_maps(160),
            "mixed6d": _middle_maps(160), "mixed6e": _middle_maps(192),
            "mixed7a": [*second, pool], "mixed7b": _smallest_maps(), "mixed7c": _smallest_maps(),
        }  # fmt: skip
        for name, branches in modules.items():
            module = Inception(channels, branches, True)
            self.add_module(name, module)
            channels = module.channels
            if name == "mixed6e":
                self.aux = nn.Module()
                self.aux.conv1 = ActiveConvolution(channels, Filter(128), True)
                self.aux.conv2 = ActiveConvolution(narrow(128), Filter(768, (2, 2), padding=(0, 0)), True)
                self.aux.fc = nn.Linear(narrow(768), CLASSES)
        self.names = list(modules)
        self.fc, self.drop, self.before_head = nn.Linear(channels, CLASSES), nn.Dropout(dropout), before_head()

    def forward(self, images: torch.Tensor) -> Logits:
        x = functional.max_pool2d(self.conv3(self.conv2(self.conv1(images))), 3, 2, padding=1)
        x = self.conv5(self.conv4(x))
        heads = []
        for name in self.names:
            x = getattr(self, name)(x)
            if name == "mixed6e":
                aux = self.aux.conv2(self.aux.conv1(self.before_head(x)))
                heads.append(self.aux.fc(aux.mean(dim=(2, 3))))
        return [self.fc(self.drop(x.mean(dim=(2, 3)))), *heads]
