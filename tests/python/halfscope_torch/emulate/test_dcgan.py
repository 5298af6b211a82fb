"""A step of DCGAN in FP32 beside PyTorch's float64: the noise, both losses' gradients, the updated discriminator."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.nn import functional

from exported_training import check_gradients, export_training

pytestmark = pytest.mark.torch

BATCH, NOISE, SEED = 8, 64, 3
# A step of SGD without momentum at a rate of 1 takes the gradient off the weights.
SETTINGS = (
    "dataset=fashion_mnist_32", "steps=1", f"batch={BATCH}", f"seed={SEED}", "optimizer=sgd", "momentum=0",
    "learning_rate=1", "schedule=constant", "policy=fp32",
)  # fmt: skip

Tensors = dict[str, torch.Tensor]


def philox(counters: np.ndarray, seed: int) -> np.ndarray:
    """Philox4x32-10 (Salmon et al., SC 2011) of counters (count, 4)."""
    counter = [counters[:, i].astype(np.uint64) for i in range(4)]
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        shift = np.uint64(32)
        counter = [
            (second >> shift) ^ counter[1] ^ np.uint64(keys[0]), second & low,
            (first >> shift) ^ counter[3] ^ np.uint64(keys[1]), first & low,
        ]  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(counter, 1).astype(np.uint32)


def site(name: str) -> int:
    """FNV-1a."""
    value = 2166136261
    for byte in name.encode():
        value = (value ^ byte) * 16777619 & 0xFFFFFFFF
    return value


def noise(step: int) -> torch.Tensor:
    """(batch, 64) normal numbers by Marsaglia's polar method, whose attempts count up the third word."""
    own = philox(np.array([[0, 0, step, site("generator.noise")]], dtype=np.uint64), SEED)[0, 0]
    count = BATCH * NOISE
    values, missing, attempt = np.zeros(count), np.arange(count), 0
    while len(missing):
        counters = np.stack([missing, 0 * missing, 0 * missing + attempt, 0 * missing + int(own)], 1)
        bits = philox(counters.astype(np.uint64), SEED).view(np.int32) >> 8
        u, v = bits[:, 0] * 2.0**-23, bits[:, 1] * 2.0**-23
        radius = u * u + v * v
        good = (radius > 0) & (radius < 1)
        values[missing[good]] = u[good] * np.sqrt(-2 * np.log(radius[good]) / radius[good])
        missing, attempt = missing[~good], attempt + 1
    return torch.from_numpy(values.reshape(BATCH, NOISE))


def norm(weights: Tensors, name: str, x: torch.Tensor) -> torch.Tensor:
    return functional.batch_norm(x, None, None, weights[f"{name}.gamma"], weights[f"{name}.beta"], training=True)


def generate(weights: Tensors, z: torch.Tensor) -> torch.Tensor:
    x = z[:, :, None, None]
    for layer in range(1, 5):
        # Ours are (height, width, out, in).
        kernel = weights[f"generator.deconv{layer}.weight"].permute(3, 2, 0, 1)
        x = functional.conv_transpose2d(x, kernel) if layer == 1 else functional.conv_transpose2d(x, kernel, None, 2, 1)
        if layer < 4:
            x = functional.relu(norm(weights, f"generator.bn{layer}", x))
    return torch.tanh(x)


def answers(weights: Tensors, x: torch.Tensor) -> torch.Tensor:
    for layer in range(1, 4):
        # Ours are (height, width, in, out).
        x = functional.conv2d(x, weights[f"discriminator.conv{layer}.weight"].permute(3, 2, 0, 1), None, 2, 1)
        if layer > 1:
            x = norm(weights, f"discriminator.bn{layer}", x)
        x = functional.leaky_relu(x, 0.2)
    flat = x.permute(0, 2, 3, 1).reshape(len(x), -1)
    return flat @ weights["discriminator.fc.weight"] + weights["discriminator.fc.bias"]


def loss(model: str, logits: torch.Tensor, truth: float) -> torch.Tensor:
    targets = torch.full_like(logits, truth)
    if model == "dcgan_logits":
        return functional.binary_cross_entropy_with_logits(logits, targets)
    return functional.binary_cross_entropy(torch.sigmoid(logits), targets)


def part(leaves: Tensors, network: str) -> Tensors:
    """The weights of one network."""
    return {name: leaf for name, leaf in leaves.items() if name.startswith(network)}


@pytest.mark.parametrize("model", ["dcgan", "dcgan_logits"])
def test_a_step_of_both_networks_agrees(model: str, tmp_path: Path) -> None:
    exported = export_training(tmp_path / "step.safetensors", f"model={model}", *SETTINGS)
    leaves = {
        name.removeprefix("model."): values.double().requires_grad_()
        for name, values in exported.items()
        if name.startswith("model.") and "running" not in name
    }
    real = exported["images.0"].double().permute(0, 3, 1, 2)
    assert real.shape == (BATCH, 1, 32, 32)
    made = generate(leaves, noise(1))

    of_discriminator = loss(model, answers(leaves, real), 1) + loss(model, answers(leaves, made.detach()), 0)
    of_discriminator.backward()
    assert math.isclose(of_discriminator.item(), exported["losses"].item(), rel_tol=1e-5)
    check_gradients(exported, part(leaves, "discriminator"))

    # The generator learns from the discriminator that the update has made.
    updated = {name: exported[f"after.model.{name}"].double() for name in part(leaves, "discriminator")}
    loss(model, answers(updated, made), 1).backward()
    check_gradients(exported, part(leaves, "generator"))
