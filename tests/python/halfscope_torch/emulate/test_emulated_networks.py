"""Emulated PyTorch trainings beside the simulator's: the same weights, batches, formats and sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from exported_training import export_training
from halfscope.torch import Emulation, GradScaler, emulate
from test_same_network import LOSS_WEIGHT, SETTINGS, STEPS, Detector, loss_of, make_anchors, targets

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

POLICIES = ("fp16_mixed", "fp16_no_master")
COUNTED = ("elements", "zeros", "flushed", "subnormal", "overflow")


class DetectorOfModules(Detector):
    """The same, with modules for pooling and ReLU, so that their gradients have names."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        super().__init__(weights)
        self.relu1, self.relu2, self.relu3, self.relu4 = (torch.nn.ReLU() for _ in range(4))
        self.pool1, self.pool2, self.pool3 = (torch.nn.MaxPool2d(2) for _ in range(3))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.pool1(self.relu1(self.conv1(images.permute(0, 3, 1, 2))))
        x = self.pool2(self.relu2(self.conv2(x)))
        fine = self.relu3(self.conv3(x))
        coarse = self.relu4(self.conv4(self.pool3(fine)))
        maps = (self.head1(fine), self.head2(coarse))
        return torch.cat([m.permute(0, 2, 3, 1).reshape(len(m), -1, m.shape[1] // 3) for m in maps], dim=1)


OPERAND_COUNTS = ("elements", "zeros", "flushed", "subnormal", "clipped", "blocks", "clipped_blocks", "zero_scales")


def emulated_detector(exported: dict[str, torch.Tensor], policy: str, scale: float, steps: int) -> tuple:
    """Losses, and the counts of the first step: of casts and, under "operand_counts", of operands."""
    model = DetectorOfModules(exported)
    optimizer, scaler = torch.optim.Adam(model.parameters()), GradScaler(scale)
    anchors = make_anchors(exported["images.0"].shape[1])
    losses, first = [], {}
    with emulate(model, policy, optimizer=optimizer, scaler=scaler, compare_steps=()) as emulated:
        for step in range(steps):
            images, boxes = exported[f"images.{step}"], exported[f"boxes.{step}"]
            optimizer.param_groups[0]["lr"] = exported["learning_rates"][step].item()
            loss = loss_of(model(images), *targets(anchors, boxes, len(images)))
            losses.append(loss.item())
            optimizer.zero_grad()
            scaler.scale(loss * LOSS_WEIGHT).backward()
            scaler.step(optimizer)
            scaler.update()
            first = first or counts_of(emulated)
    return losses, first


@pytest.fixture(scope="module", params=POLICIES)
def export(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable:
    """The simulator's training under a policy, which is returned with it, at a loss scale."""

    def export_at(scale: float, steps: int) -> tuple[str, dict[str, torch.Tensor]]:
        changed = {"policy": request.param, "steps": steps, "observe_every": 1000, "loss_scale": scale}
        kept = [setting for setting in SETTINGS if setting.partition("=")[0] not in changed]
        roles = "observe_roles=activation,activation_gradient,weight_gradient,weight"
        path = tmp_path_factory.mktemp("exported") / "training.safetensors"
        return request.param, export_training(path, *kept, *(f"{key}={value}" for key, value in changed.items()), roles)

    return export_at


@pytest.fixture(scope="module")
def first_step(export: Callable) -> tuple[dict[str, torch.Tensor], dict[str, list[int]]]:
    """The simulator's first step without loss scaling, and the emulated one's counts."""
    policy, exported = export(1, 1)
    return exported, emulated_detector(exported, policy, 1, 1)[1]


def counts_of(emulated: Emulation) -> dict[str, list[int]]:
    """By "ROLE.TENSOR"."""
    operands = emulated.operands()
    return {
        f"{role}.{tensor}": [getattr(total, name) for name in COUNTED]
        for (role, tensor), total in emulated.casts().items()
    } | {
        f"operand_counts.{layer}.{place}": [getattr(operands[layer, place].counts, name) for name in OPERAND_COUNTS]
        for layer, place in operands
    }


def simulated(exported: dict[str, torch.Tensor], name: str) -> list[int]:
    return [int(number) for number in exported[f"counts.1.{name}"]]


def test_counts_of_the_first_step_are_the_simulators(first_step: tuple) -> None:
    exported, ours = first_step
    names = [f"{kind}.{layer}.{part}" for kind in ("weight_gradient", "weight") for part in ("weight", "bias")
             for layer in ("conv1", "conv2", "conv3", "conv4", "head1", "head2")]  # fmt: skip
    pairs = {name: name for name in names}
    pairs |= {f"activation.{layer}": f"activation.{layer}" for layer in ("conv1", "conv2", "conv3", "conv4", "head1")}
    pairs |= {f"activation_gradient.pool{i}": f"activation_gradient.pool{i}" for i in (1, 2, 3)}
    pairs |= {f"activation_gradient.relu{i}": f"activation_gradient.conv{i}.relu" for i in (3, 4)}
    assert {name: ours[name] for name in pairs} == {name: simulated(exported, other) for name, other in pairs.items()}


def test_flushed_gradients_of_the_heads_are_the_simulators(first_step: tuple) -> None:
    """The simulator casts them by kind of prediction, here each head's come together."""
    exported, ours = first_step
    by_kind = [simulated(exported, f"activation_gradient.{kind}")[2] for kind in ("logits", "offsets")]
    assert sum(ours[f"activation_gradient.head{i}"][2] for i in (1, 2)) == sum(by_kind) > 100_000


def test_losses_are_the_simulators(export: Callable) -> None:
    """At a scale that fits. Without it nine tenths are flushed, and a bit decides whether Adam moves a weight."""
    policy, exported = export(1024, STEPS)
    losses, _ = emulated_detector(exported, policy, 1024, STEPS)
    for step, (ours, theirs) in enumerate(zip(losses, exported["losses"].tolist())):
        assert math.isclose(ours, theirs, rel_tol=1e-3), f"step {step + 1}: emulated {ours}, simulated {theirs}"
    assert losses[-1] < 0.5 * losses[0]  # it does learn


@pytest.mark.parametrize("recipe", ["mxfp8", "fp8_current", "fp8_delayed", "mxfp4"])
def test_a_recipes_operands_and_losses_are_the_simulators(recipe: str, tmp_path: Path) -> None:
    """Every operand's counts in the first step, and the losses of ten at a scale that fits.

    The last bit of an FP32 sum decides now and then how an operand is rounded, so that losses part: by 1e-6 in step
    8, and by 1e-3 after some 20.
    """
    changed = {"policy": recipe, "steps": 10, "observe_every": 1000, "loss_scale": 1024}
    kept = [setting for setting in SETTINGS if setting.partition("=")[0] not in changed]
    settings = [*kept, *(f"{key}={value}" for key, value in changed.items())]
    exported = export_training(tmp_path / "training.safetensors", *settings)
    losses, ours = emulated_detector(exported, recipe, 1024, 10)
    theirs = {
        name.replace(".1.", ".", 1): [int(count) for count in counts]
        for name, counts in exported.items()
        if name.startswith("operand_counts.1.")
    }
    assert len(theirs) == 6 * 6 - 2  # the images need no gradient
    assert {name: counts for name, counts in ours.items() if name.startswith("operand_counts.")} == theirs
    for step, (loss, their) in enumerate(zip(losses, exported["losses"].tolist())):
        assert math.isclose(loss, their, rel_tol=1e-4), f"step {step + 1}: emulated {loss}, simulated {their}"


TEXT_SETTINGS = (
    "model=gru_lm", "dataset=kjv_text", "batch=16", "optimizer=adam", "learning_rate=3e-3", "schedule=cosine",
    "warmup_steps=20", "observe_every=1000", "loss_scale=128", f"loss_weight={LOSS_WEIGHT}",
    "observe_roles=activation,activation_gradient,weight_gradient,weight",
)  # fmt: skip


class LanguageModel(torch.nn.Module):
    """sim/models/language_model.cpp with PyTorch's GRU: logits (time, batch, vocabulary)."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        super().__init__()
        table, cell = weights["model.embedding"], weights["model.gru.hidden_weight"]
        self.embedding = torch.nn.Embedding(*table.shape, _weight=table.clone())
        self.gru = torch.nn.GRU(table.shape[1], cell.shape[0])
        self.output = torch.nn.Linear(cell.shape[0], table.shape[0])
        with torch.no_grad():
            for ours, theirs in (("ih", "input"), ("hh", "hidden")):
                getattr(self.gru, f"weight_{ours}_l0").copy_(weights[f"model.gru.{theirs}_weight"].t())
                getattr(self.gru, f"bias_{ours}_l0").copy_(weights[f"model.gru.{theirs}_bias"])
            self.output.weight.copy_(weights["model.output.weight"].t())
            self.output.bias.copy_(weights["model.output.bias"])

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.output(self.gru(self.embedding(tokens))[0])


@pytest.fixture(scope="module", params=POLICIES)
def language_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple:
    """The simulator's exported training under a policy, the emulated losses, and the first step's counts."""
    path = tmp_path_factory.mktemp("exported") / "training.safetensors"
    exported = export_training(path, *TEXT_SETTINGS, f"policy={request.param}", f"steps={STEPS}")
    model = LanguageModel(exported)
    optimizer, scaler = torch.optim.Adam(model.parameters()), GradScaler(128)
    losses, first = [], {}
    with emulate(model, request.param, optimizer=optimizer, scaler=scaler, compare_steps=()) as emulated:
        for step in range(STEPS):
            tokens, labels = (exported[f"{kind}.{step}"].long().view(16, -1).t() for kind in ("tokens", "labels"))
            optimizer.param_groups[0]["lr"] = exported["learning_rates"][step].item()
            loss = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
            losses.append(loss.item())
            optimizer.zero_grad()
            scaler.scale(loss * LOSS_WEIGHT).backward()
            scaler.step(optimizer)
            scaler.update()
            first = first or counts_of(emulated)
    return exported, losses, first


def test_counts_of_the_language_models_first_step_are_the_simulators(language_model: tuple) -> None:
    """Counts of the tensors on which PyTorch's own sigmoid and tanh have next to no bearing."""
    exported, _, ours = language_model
    pairs = {f"{kind}.output.{part}": f"{kind}.output.{part}" for kind in ("weight", "weight_gradient")
             for part in ("weight", "bias")}  # fmt: skip
    pairs |= {"activation_gradient.output": "activation_gradient.output"}
    pairs |= {"weight.embedding.weight": "weight.embedding"}
    pairs |= {f"weight.gru.{part}_l0": f"weight.gru.{name}" for part, name in (
        ("weight_ih", "input_weight"), ("weight_hh", "hidden_weight"))}  # fmt: skip
    assert {name: ours[name] for name in pairs} == {name: simulated(exported, other) for name, other in pairs.items()}


def test_counts_behind_sigmoid_and_tanh_differ_in_a_few_elements(language_model: tuple) -> None:
    """These functions differ from the simulator's in the last bit of FP32, and so now and then in that of FP16."""
    exported, _, ours = language_model
    for name in ("activation.output", "weight_gradient.embedding.weight"):
        other = name.replace("embedding.weight", "embedding")
        for count, theirs in zip(ours[name], simulated(exported, other)):
            assert abs(count - theirs) <= 1e-5 * ours[name][0]


def test_losses_of_the_language_model_are_the_simulators(language_model: tuple) -> None:
    exported, losses, _ = language_model
    for step, (ours, theirs) in enumerate(zip(losses, exported["losses"].tolist())):
        assert math.isclose(ours, theirs, rel_tol=1e-3), f"step {step + 1}: emulated {ours}, simulated {theirs}"
    assert losses[-1] < 0.9 * losses[0]
