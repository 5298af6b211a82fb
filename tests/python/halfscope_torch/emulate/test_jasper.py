"""Jasper in FP32 beside PyTorch's float64: the loss and the gradient of every parameter."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.nn import functional

from exported_training import export_training
from recordings import write_recordings

pytestmark = pytest.mark.torch

BATCH, STRIDE, BLOCKS, REPEATS = 6, 2, 10, 5
# A step of SGD without momentum at a rate of 1 takes the gradient off the weights.
SETTINGS = (
    "model=jasper", "dataset=spoken_digits", "width=0.03125", "steps=1", f"batch={BATCH}",
    "optimizer=sgd", "momentum=0", "learning_rate=1", "schedule=constant", "policy=fp32",
)  # fmt: skip


class Jasper:
    """The network on `weights`; x is (batch, channels, time), of which `spoken` (batch, time) is no padding."""

    def __init__(self, weights: dict[str, torch.Tensor], spoken: torch.Tensor) -> None:
        self.weights = weights
        self.spoken = spoken[:, None].double()

    def norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        """Batch norm over the frames that are spoken, by its definition."""
        count = self.spoken.sum()
        mean = (x * self.spoken).sum((0, 2), keepdim=True) / count
        variance = ((x - mean).square() * self.spoken).sum((0, 2), keepdim=True) / count
        gamma, beta = (self.weights[f"model.{name}.bn.{part}"][:, None] for part in ("gamma", "beta"))
        return (gamma * (x - mean) / (variance + 1e-5).sqrt() + beta) * self.spoken

    def convolve(self, x: torch.Tensor, name: str, stride: int = 1) -> torch.Tensor:
        kernel = self.weights[f"model.{name}.weight"].squeeze(1).permute(2, 1, 0)
        return self.norm(functional.conv1d(x, kernel, stride=stride, padding=kernel.shape[2] // 2), name)

    def logits(self, features: torch.Tensor) -> torch.Tensor:
        """(time, batch, labels) of features (batch, time, feature)."""
        x = torch.relu(self.convolve(features.transpose(1, 2), "conv1", STRIDE))
        before = []
        for block in range(1, BLOCKS + 1):
            before.append(x)
            for i in range(1, REPEATS + 1):
                x = self.convolve(x, f"block{block}.conv{i}")
                if i < REPEATS:
                    x = torch.relu(x)
            for i, earlier in enumerate(before, 1):
                x = x + self.convolve(earlier, f"block{block}.residual{i}")
            x = torch.relu(x)
        for name in ("conv2", "conv3"):
            x = torch.relu(self.convolve(x, name))
        return x.permute(2, 0, 1) @ self.weights["model.output.weight"] + self.weights["model.output.bias"]


def test_loss_and_gradients_agree(tmp_path: Path) -> None:
    write_recordings(tmp_path)
    exported = export_training(tmp_path / "step.safetensors", f"data={tmp_path}", *SETTINGS)
    names = [name for name in exported if name.startswith("model.") and "running" not in name]
    leaves = {name: exported[name].double().requires_grad_() for name in names}
    frames, counts = exported["lengths.0"].long(), exported["label_counts.0"].long()
    assert len(set(frames.tolist())) == BATCH
    steps = (frames + STRIDE - 1) // STRIDE
    spoken = torch.arange(int(steps.max()))[None] < steps[:, None]
    logits = Jasper(leaves, spoken).logits(exported["images.0"].double())
    losses = functional.ctc_loss(
        logits.log_softmax(2), exported["labels.0"].long(), steps, counts, blank=0, reduction="none"
    )
    loss = losses.mean()
    loss.backward()

    assert math.isclose(loss.item(), exported["losses"].item(), rel_tol=1e-5)
    for name, leaf in leaves.items():
        ours = exported[name].double() - exported[f"after.{name}"].double()
        # Rounding error of a gradient taken from the difference of two weights.
        rounding = 2.0**-23 * float(exported[name].norm())
        assert leaf.grad is not None
        assert float((ours - leaf.grad).norm()) < 1e-4 * float(leaf.grad.norm()) + rounding, name
