"""Forward and one step's gradients of the image networks in FP32, beside the same structures in PyTorch's float64.

Its FP32 gradients of ResNet-50 are up to a tenth off its own float64's: fifty batch norms pass rounding errors on.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn
from torch.nn import functional

from exported_training import export_training

pytestmark = pytest.mark.torch

# A step of SGD without momentum at a rate of 1 takes the gradient off the weights.
SETTINGS = (
    "dataset=fashion_mnist", "steps=1", "batch=16", "optimizer=sgd", "momentum=0", "learning_rate=1",
    "schedule=constant", "policy=fp32",
)  # fmt: skip
EPSILON = 2.0**-23
BOUND = 1e-4


class AlexNet(nn.Module):
    """Krizhevsky et al. at an eighth of the width, with a stem for images of 28x28."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 5, padding=2)
        self.conv2 = nn.Conv2d(12, 32, 5, padding=2, groups=2)
        self.conv3 = nn.Conv2d(32, 48, 3, padding=1)
        self.conv4 = nn.Conv2d(48, 48, 3, padding=1, groups=2)
        self.conv5 = nn.Conv2d(48, 32, 3, padding=1, groups=2)
        self.fc6, self.fc7, self.fc8 = nn.Linear(288, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        relu, pool = torch.relu, nn.MaxPool2d(3, 2, ceil_mode=True)
        norm = nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2)
        x = pool(norm(relu(self.conv1(images))))
        x = pool(norm(relu(self.conv2(x))))
        x = pool(relu(self.conv5(relu(self.conv4(relu(self.conv3(x)))))))
        x = x.permute(0, 2, 3, 1).flatten(1)  # rows, columns, channels, as the weights are ordered
        return self.fc8(relu(self.fc7(relu(self.fc6(x)))))


class VggD(nn.Module):
    """Simonyan & Zisserman, configuration D, at an eighth of the width."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[list[str]] = []
        channels = 1
        for block, (count, out) in enumerate(((2, 8), (2, 16), (3, 32), (3, 64), (3, 64)), 1):
            self.names.append([f"conv{block}_{i + 1}" for i in range(count)])
            for name in self.names[-1]:
                self.add_module(name, nn.Conv2d(channels, out, 3, padding=1))
                channels = out
        self.fc6, self.fc7, self.fc8 = nn.Linear(64, 512), nn.Linear(512, 512), nn.Linear(512, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = images
        for names in self.names:
            for name in names:
                x = torch.relu(getattr(self, name)(x))
            x = functional.max_pool2d(x, 2, ceil_mode=True)
        return self.fc8(torch.relu(self.fc7(torch.relu(self.fc6(x.flatten(1))))))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with the stride in the first."""

    def __init__(self, channels: int, middle: int, stride: int, projects: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, middle, 1, stride=stride, bias=False)
        self.conv2 = nn.Conv2d(middle, middle, 3, padding=1, bias=False)
        self.conv3 = nn.Conv2d(middle, 4 * middle, 1, bias=False)
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm2d(middle), nn.BatchNorm2d(middle), nn.BatchNorm2d(4 * middle)
        if projects:
            self.projection = nn.Conv2d(channels, 4 * middle, 1, stride=stride, bias=False)
            self.projection_bn = nn.BatchNorm2d(4 * middle)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = self.projection_bn(self.projection(x)) if hasattr(self, "projection") else x
        branch = torch.relu(self.bn1(self.conv1(x)))
        branch = torch.relu(self.bn2(self.conv2(branch)))
        return torch.relu(self.bn3(self.conv3(branch)) + shortcut)


class ResNet50(nn.Module):
    """He et al. at an eighth of the width, with a stem for images of 28x28."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        channels = 8
        for stage, count in enumerate((3, 4, 6, 3)):
            middle = 8 << stage
            blocks = []
            for index in range(count):
                blocks.append(Bottleneck(channels, middle, 2 if stage and index == 0 else 1, index == 0))
                channels = 4 * middle
            self.add_module(f"stage{stage + 1}", nn.ModuleList(blocks))
        self.fc = nn.Linear(channels, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(torch.relu(self.bn1(self.conv1(images))), 3, 2, padding=1)
        for stage in (self.stage1, self.stage2, self.stage3, self.stage4):
            for block in stage:
                x = block(x)
        return self.fc(x.mean(dim=(2, 3)))


def as_torch(values: torch.Tensor) -> torch.Tensor:
    """From (row, column, in, out) and (in, out) to PyTorch's order."""
    return values.permute(3, 2, 0, 1) if values.dim() == 4 else values.t() if values.dim() == 2 else values


def our_name(name: str) -> str:
    """A batch norm's parameters are called gamma and beta."""
    layer, kind = name.rsplit(".", 1)
    if "bn" in layer.rsplit(".", 1)[-1]:
        kind = {"weight": "gamma", "bias": "beta"}[kind]
    return f"model.{layer}.{kind}"


def relative(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours.double() - theirs.double()).norm() / theirs.double().norm())


NETWORKS = {
    "alexnet": (AlexNet, ()),
    "vgg_d": (VggD, ()),
    # At 1 a rounding error of the first layer grows a thousandfold until the last.
    "resnet50": (ResNet50, ("residual_gamma=0.2",)),
}


@pytest.mark.parametrize("model", NETWORKS)
def test_forward_and_gradients_agree(model: str, tmp_path: Path) -> None:
    network, settings = NETWORKS[model]
    exported = export_training(tmp_path / "step.safetensors", f"model={model}", *SETTINGS, *settings)
    peer = network().double()
    parameters = dict(peer.named_parameters())
    ours = {name for name in exported if name.startswith("model.") and "running" not in name}
    assert {our_name(name) for name in parameters} == ours
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(as_torch(exported[our_name(name)]))
    images = exported["images.0"].permute(0, 3, 1, 2).double()
    loss = functional.cross_entropy(peer(images), exported["labels.0"].long())
    loss.backward()
    assert math.isclose(loss.item(), exported["losses"].item(), rel_tol=BOUND)
    for name, parameter in parameters.items():
        before, after = exported[our_name(name)], exported[f"after.{our_name(name)}"]
        gradient = as_torch(before - after)
        assert parameter.grad is not None
        largest = float(parameter.grad.norm())
        assert largest > 100 * EPSILON * float(before.norm()), f"{name}: too small to be read off the weights"
        assert relative(gradient, parameter.grad) < BOUND, name
