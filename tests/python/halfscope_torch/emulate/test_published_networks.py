"""Forward and one step's gradients of the image networks in FP32, beside the same structures in PyTorch's float64.

Its FP32 gradients of ResNet-50 are up to a tenth off its own float64's: fifty batch norms pass rounding errors on.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from exported_training import export_training
from torch_classifier_parts import classification_loss
from torch_image_networks import CLASSIFIERS

pytestmark = pytest.mark.torch

# A step of SGD without momentum at a rate of 1 takes the gradient off the weights.
SETTINGS = (
    "dataset=fashion_mnist", "steps=1", "batch=16", "optimizer=sgd", "momentum=0", "learning_rate=1",
    "schedule=constant", "policy=fp32",
)  # fmt: skip
EPSILON = 2.0**-23
BOUND = 1e-4


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


# Where a residual branch begins at 1 a rounding error of the first layer grows a thousandfold until the last.
# There is no such setting of these: they are to be no farther from float64 than PyTorch's FP32 is.
SENSITIVE = ("inception_v2", "inception_v3", "resnet50_preact")
MORE_SETTINGS = {"resnet50": ("residual_gamma=0.2",)}


def gradients(
    model: str, exported: dict[str, torch.Tensor], dtype: torch.dtype
) -> tuple[float, dict[str, torch.Tensor]]:
    """PyTorch's loss, and its gradients by our names."""
    peer = CLASSIFIERS[model]().to(dtype)
    parameters = {our_name(name): parameter for name, parameter in peer.named_parameters()}
    assert set(parameters) == {name for name in exported if name.startswith("model.") and "running" not in name}
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(as_torch(exported[name]))
    images = exported["images.0"].permute(0, 3, 1, 2).to(dtype)
    loss = classification_loss(peer(images), exported["labels.0"].long())
    loss.backward()
    found = {}
    for name, parameter in parameters.items():
        assert parameter.grad is not None, name
        found[name] = parameter.grad.double()
    return loss.item(), found


def whole(named: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([named[name].flatten() for name in sorted(named)])


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_forward_and_gradients_agree(model: str, tmp_path: Path) -> None:
    settings = (f"model={model}", *SETTINGS, *MORE_SETTINGS.get(model, ()))
    exported = export_training(tmp_path / "step.safetensors", *settings)
    loss, exact = gradients(model, exported, torch.float64)
    assert math.isclose(loss, exported["losses"].item(), rel_tol=BOUND)
    ours = {name: as_torch(exported[name].double() - exported[f"after.{name}"].double()) for name in exact}
    if model in SENSITIVE:
        _, single = gradients(model, exported, torch.float32)
        assert relative(whole(ours), whole(exact)) < max(BOUND, relative(whole(single), whole(exact)))
        return
    for name, gradient in exact.items():
        # Rounding error of a gradient taken from the difference of two weights.
        rounding = EPSILON * float(exported[name].norm())
        assert float((ours[name] - gradient).norm()) < BOUND * float(gradient.norm()) + rounding, name
