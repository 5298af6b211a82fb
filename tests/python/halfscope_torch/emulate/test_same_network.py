"""The simulator trains the network that PyTorch trains: the detector, written down a second time, step by step."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from exported_training import export_training

pytestmark = pytest.mark.torch

STEPS = 50
LOSS_WEIGHT = 1 / 256
SETTINGS = (
    "model=ssd", "dataset=detection_scenes", f"steps={STEPS}", "batch=16", "optimizer=adam", "learning_rate=2e-3",
    "schedule=cosine", "warmup_steps=20", f"loss_weight={LOSS_WEIGHT}", "policy=fp32",
)  # fmt: skip
CLASSES, OFFSETS, STRIDES, SIDES = 11, 4, (4, 8), ((20, 24, 28), (24, 30, 36))


class Detector(torch.nn.Module):
    """Four convolutions with ReLU and pooling, and a head on each of the last two maps."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        super().__init__()
        for name in ("conv1", "conv2", "conv3", "conv4", "head1", "head2"):
            kernel = weights[f"model.{name}.weight"].permute(3, 2, 0, 1)  # from (row, column, in, out)
            layer = torch.nn.Conv2d(kernel.shape[1], kernel.shape[0], 3, padding=1)
            layer.weight.data = kernel.contiguous()
            layer.bias.data = weights[f"model.{name}.bias"].clone()
            self.add_module(name, layer)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Predictions (batch, anchor, classes + offsets) of images (batch, row, column, channel)."""
        pool, relu = torch.nn.functional.max_pool2d, torch.relu
        x = pool(relu(self.conv1(images.permute(0, 3, 1, 2))), 2)
        x = pool(relu(self.conv2(x)), 2)
        fine = relu(self.conv3(x))
        coarse = relu(self.conv4(pool(fine, 2)))
        maps = (self.head1(fine), self.head2(coarse))
        return torch.cat([m.permute(0, 2, 3, 1).reshape(len(m), -1, CLASSES + OFFSETS) for m in maps], dim=1)


def make_anchors(size: int) -> torch.Tensor:
    """(anchor, 3): centre row, centre column and side, in pixels."""
    anchors = []
    for stride, sides in zip(STRIDES, SIDES):
        centres = [(cell + 0.5) * stride for cell in range(size // stride)]
        anchors += [(row, column, side) for row in centres for column in centres for side in sides]
    return torch.tensor(anchors)


def overlaps(anchors: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    """Intersection over union (anchor, box); boxes are (box, 4): top, left, bottom, right."""
    half = anchors[:, 2:] / 2
    low, high = anchors[:, :2] - half, anchors[:, :2] + half
    common = torch.minimum(high[:, None], boxes[None, :, 2:]) - torch.maximum(low[:, None], boxes[None, :, :2])
    area = common.clamp(min=0).prod(dim=-1)
    return area / (anchors[:, 2:] ** 2 + (boxes[:, 2:] - boxes[:, :2]).prod(dim=-1)[None] - area)


def targets(anchors: torch.Tensor, boxes: torch.Tensor, batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Labels (batch, anchor), 0 for the background, and offsets (batch, anchor, 4)."""
    labels = torch.zeros(batch, len(anchors), dtype=torch.long)
    offsets = torch.zeros(batch, len(anchors), OFFSETS)
    for image in range(batch):
        own = boxes[boxes[:, 0] == image]
        if not len(own):
            continue
        shares = overlaps(anchors, own[:, 2:])
        most, match = shares.max(dim=1)
        match[most < 0.5] = -1
        for box, anchor in enumerate(shares.argmax(dim=0)):
            match[anchor] = box
        chosen, found = own[match], match >= 0
        centre, side = (chosen[:, 2:4] + chosen[:, 4:6]) / 2, chosen[:, 4:6] - chosen[:, 2:4]
        relative = torch.cat(
            [(centre - anchors[:, :2]) / anchors[:, 2:] / 0.1, (side / anchors[:, 2:]).log() / 0.2], dim=1
        )
        labels[image, found], offsets[image, found] = chosen[found, 1].long() + 1, relative[found]
    return labels, offsets


def loss_of(predictions: torch.Tensor, labels: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    functional, matched = torch.nn.functional, labels > 0
    classes = functional.cross_entropy(predictions[..., :CLASSES].flatten(0, 1), labels.flatten(), reduction="sum")
    boxes = functional.smooth_l1_loss(predictions[..., CLASSES:][matched], offsets[matched], reduction="sum")
    return (classes + boxes) / labels.numel()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    return export_training(tmp_path_factory.mktemp("exported") / "training.safetensors", *SETTINGS)


def test_pytorch_trains_the_same_detector(exported: dict[str, torch.Tensor]) -> None:
    model = Detector(exported)
    optimizer = torch.optim.Adam(model.parameters())
    anchors = make_anchors(exported["images.0"].shape[1])
    assert len(exported["losses"]) == STEPS
    for step, (ours, rate) in enumerate(zip(exported["losses"].tolist(), exported["learning_rates"].tolist())):
        images, boxes = exported[f"images.{step}"], exported[f"boxes.{step}"]
        optimizer.param_groups[0]["lr"] = rate
        loss = loss_of(model(images), *targets(anchors, boxes, len(images)))
        assert math.isclose(loss.item(), ours, rel_tol=1e-4), f"step {step + 1}: PyTorch {loss.item()}, here {ours}"
        optimizer.zero_grad()
        (loss * LOSS_WEIGHT).backward()
        optimizer.step()
    assert exported["losses"][-1] < 0.5 * exported["losses"][0]  # it does learn
