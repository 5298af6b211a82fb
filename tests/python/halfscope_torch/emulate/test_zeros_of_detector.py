"""Causes of the detector's zeros are the simulator's, which trains the same step with some roles' formats left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from exported_training import export_training
from halfscope import _core
from halfscope.torch import Emulation, GradScaler, emulate
from test_emulated_networks import DetectorOfModules
from test_same_network import LOSS_WEIGHT, SETTINGS, loss_of, make_anchors, targets

pytestmark = pytest.mark.torch

# Stages in the order of the data, by the roles that have the format.
STAGES = (
    (),
    ("weight", "activation"),
    ("weight", "activation", "activation_gradient"),
    ("weight", "activation", "activation_gradient", "weight_gradient"),
)
MOMENT = "after.optimizer.first_moment."  # Adam's: a tenth of the gradient after one step
BACKWARD = ("upstream", "gradient", "product", "cancelled")

Train = Callable[[int, str, int], dict[str, torch.Tensor]]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """The simulator's first step at a stage, in a format and at a loss scale; each is trained once."""
    known: dict[tuple, dict[str, torch.Tensor]] = {}

    def train(stage: int, format: str, scale: int) -> dict[str, torch.Tensor]:
        # Gradients without a cast are FP32's at any scale, and so are their sums.
        key = (stage, format if stage else "", scale if stage > 1 else 1)
        if key not in known:
            sums = _core.default_products(*[format] * 3) if stage > 1 else "fp32_fused"
            changed = {"steps": 1, "loss_scale": key[2], "order": sums, **dict.fromkeys(STAGES[stage], format)}
            kept = [setting for setting in SETTINGS if setting.partition("=")[0] not in changed]
            path = tmp_path_factory.mktemp("stage") / "training.safetensors"
            known[key] = export_training(path, *kept, *(f"{name}={value}" for name, value in changed.items()))
        return known[key]

    return train


def zeros_of(exported: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """By parameter: which elements of its gradient are zero."""
    return {name[len(MOMENT) :]: moment == 0 for name, moment in exported.items() if name.startswith(MOMENT)}


def simulated_causes(zeros: list[torch.Tensor]) -> list[int]:
    """Zeros of a gradient at each stage, as counts: zero from the first on, forward, backward, and by the result."""
    exact, forward, backward, result = zeros
    stays = (exact & forward & backward, forward & backward & ~exact, backward & ~forward, ~backward)
    return [int((result & part).sum()) for part in stays]


def emulated_step(exported: dict[str, torch.Tensor], format: str, scale: int) -> tuple[Emulation, dict[str, int]]:
    """The same step under emulation, and the zeros of each gradient."""
    model = DetectorOfModules(exported)
    optimizer, scaler = torch.optim.Adam(model.parameters()), GradScaler(scale)
    images, boxes = exported["images.0"], exported["boxes.0"]
    with emulate(model, format, optimizer=optimizer, scaler=scaler, zeros=True, compare_steps=()) as emulated:
        loss = loss_of(model(images), *targets(make_anchors(images.shape[1]), boxes, len(images)))
        scaler.scale(loss * LOSS_WEIGHT).backward()
        zeros = {name: int((weight.grad == 0).sum()) for name, weight in model.named_parameters()}
        scaler.step(optimizer)
        scaler.update()
    return emulated, zeros


@pytest.mark.parametrize("scale", [1, 1024])
@pytest.mark.parametrize("format", ["fp16", "fp8_e4m3"])
def test_causes_are_the_simulators(simulate: Train, format: str, scale: int) -> None:
    exported = [simulate(stage, format, scale) for stage in range(len(STAGES))]
    stages = [zeros_of(one) for one in exported]
    emulated, zeros = emulated_step(exported[-1], format, scale)
    table, ours, theirs = emulated.zeros(), {}, {}
    assert set(zeros) == set(stages[0]) == set(table)
    for name, count in zeros.items():
        causes = table[name].causes
        assert count == table[name].zeros == sum(causes.values())
        backward = sum(causes[cause] for cause in BACKWARD)
        ours[name] = [causes["true"], causes["forward"], backward, causes["result"]]
        theirs[name] = simulated_causes([stage[name] for stage in stages])
    assert ours == theirs
    assert sum(zeros.values()) > 2000
