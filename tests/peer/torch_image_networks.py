"""The image classifiers of sim/models written for PyTorch: an eighth of the published width, for grey images of 28x28.

Parameters are named as the simulator names them, but a batch norm's, which are its weight and bias.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from torch_classifier_parts import CLASSES, Logits, flat
from torch_inception_networks import GoogLeNet, InceptionV2, InceptionV3


class AlexNet(nn.Module):
    """Krizhevsky et al., NIPS 2012."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 5, padding=2)
        self.conv2 = nn.Conv2d(12, 32, 5, padding=2, groups=2)
        self.conv3 = nn.Conv2d(32, 48, 3, padding=1)
        self.conv4 = nn.Conv2d(48, 48, 3, padding=1, groups=2)
        self.conv5 = nn.Conv2d(48, 32, 3, padding=1, groups=2)
        self.fc6, self.fc7, self.fc8 = nn.Linear(288, 512), nn.Linear(512, 512), nn.Linear(512, CLASSES)
        self.norm, self.pool = nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2), nn.MaxPool2d(3, 2, ceil_mode=True)
        self.drop = nn.Dropout(dropout)

    def forward(self, images: torch.Tensor) -> Logits:
        relu = torch.relu
        x = self.pool(self.norm(relu(self.conv1(images))))
        x = self.pool(self.norm(relu(self.conv2(x))))
        x = self.pool(relu(self.conv5(relu(self.conv4(relu(self.conv3(x)))))))
        x = relu(self.fc6(self.drop(flat(x))))
        return [self.fc8(relu(self.fc7(self.drop(x))))]


class VggD(nn.Module):
    """Simonyan & Zisserman, ICLR 2015, configuration D."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.names: list[list[str]] = []
        channels = 1
        for block, (count, out) in enumerate(((2, 8), (2, 16), (3, 32), (3, 64), (3, 64)), 1):
            self.names.append([f"conv{block}_{i + 1}" for i in range(count)])
            for name in self.names[-1]:
                self.add_module(name, nn.Conv2d(channels, out, 3, padding=1))
                channels = out
        self.fc6, self.fc7, self.fc8 = nn.Linear(64, 512), nn.Linear(512, 512), nn.Linear(512, CLASSES)
        self.drop = nn.Dropout(dropout)

    def forward(self, images: torch.Tensor) -> Logits:
        x = images
        for names in self.names:
            for name in names:
                x = torch.relu(getattr(self, name)(x))
            x = functional.max_pool2d(x, 2, ceil_mode=True)
        x = self.drop(torch.relu(self.fc6(flat(x))))
        return [self.fc8(self.drop(torch.relu(self.fc7(x))))]


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with the stride in the first; a projection's batch norm where the norms stand behind."""

    def __init__(self, channels: int, middle: int, stride: int, projects: bool, preactivated: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, middle, 1, stride=stride, bias=False)
        self.conv2 = nn.Conv2d(middle, middle, 3, padding=1, bias=False)
        self.conv3 = nn.Conv2d(middle, 4 * middle, 1, bias=False)
        normed = (channels, middle, middle) if preactivated else (middle, middle, 4 * middle)
        self.bn1, self.bn2, self.bn3 = (nn.BatchNorm2d(n) for n in normed)
        self.projects, self.preactivated = projects, preactivated
        if projects:
            self.projection = nn.Conv2d(channels, 4 * middle, 1, stride=stride, bias=False)
            if not preactivated:
                self.projection_bn = nn.BatchNorm2d(4 * middle)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.preactivated:
            active = torch.relu(self.bn1(x))
            branch = torch.relu(self.bn2(self.conv1(active)))
            branch = self.conv3(torch.relu(self.bn3(self.conv2(branch))))
            return branch + (self.projection(active) if self.projects else x)
        branch = torch.relu(self.bn1(self.conv1(x)))
        branch = self.bn3(self.conv3(torch.relu(self.bn2(self.conv2(branch)))))
        return torch.relu(branch + (self.projection_bn(self.projection(x)) if self.projects else x))


class ResNet50(nn.Module):
    """He et al., CVPR 2016; preactivated as in ECCV 2016."""

    def __init__(self, preactivated: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        channels = 8
        self.blocks = 0
        for stage, count in enumerate((3, 4, 6, 3)):
            middle = 8 << stage
            blocks = nn.ModuleList()
            for index in range(count):
                stride = 2 if stage and index == 0 else 1
                blocks.append(Bottleneck(channels, middle, stride, index == 0, preactivated))
                channels = 4 * middle
            self.add_module(f"stage{stage + 1}", blocks)
        self.fc = nn.Linear(channels, CLASSES)
        self.preactivated = preactivated
        if preactivated:
            self.bn_last = nn.BatchNorm2d(channels)
        else:
            self.bn1 = nn.BatchNorm2d(8)

    def forward(self, images: torch.Tensor) -> Logits:
        x = self.conv1(images)
        if not self.preactivated:
            x = torch.relu(self.bn1(x))
        x = functional.max_pool2d(x, 3, 2, padding=1)
        for stage in (self.stage1, self.stage2, self.stage3, self.stage4):
            for block in stage:
                x = block(x)
        if self.preactivated:
            x = torch.relu(self.bn_last(x))
        return [self.fc(x.mean(dim=(2, 3)))]


class PreactivatedResNet50(ResNet50):
    def __init__(self) -> None:
        super().__init__(preactivated=True)


CLASSIFIERS: dict[str, type[nn.Module]] = {
    "alexnet": AlexNet, "vgg_d": VggD, "googlenet": GoogLeNet, "inception_v2": InceptionV2,
    "inception_v3": InceptionV3, "resnet50": ResNet50, "resnet50_preact": PreactivatedResNet50,
}  # fmt: skip
