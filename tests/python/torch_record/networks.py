"""Emulated and watched trainings of the tests' networks, small ones and other people's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

import foreign_networks
import small_models
import test_emulated_attention
import test_emulated_networks
import test_same_network
from halfscope import _core
from halfscope.torch import GradScaler, emulate, watch
from sharded_ranks import Network
from torch_record.doors import of_emulation, of_model, of_watch, with_folder

Training = tuple[nn.Module, Callable[[], torch.Tensor]]


def seeded(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def detector() -> Training:
    """The network of test_emulated_networks.py, on two scenes of two boxes each."""
    channels = {"conv1": (3, 6), "conv2": (6, 8), "conv3": (8, 8), "conv4": (8, 8), "head1": (8, 45), "head2": (8, 45)}
    weights = {f"model.{name}.weight": seeded(3, 3, *sizes, scale=0.2) for name, sizes in channels.items()}
    weights |= {f"model.{name}.bias": torch.zeros(sizes[1]) for name, sizes in channels.items()}
    model = test_emulated_networks.DetectorOfModules(weights)
    images, anchors = seeded(2, 32, 32, 3), test_same_network.make_anchors(32)
    boxes = torch.tensor([[0.0, 1, 2, 2, 26, 24], [0, 3, 8, 6, 30, 30], [1, 5, 1, 4, 22, 28], [1, 2, 10, 9, 31, 31]])
    targets = test_same_network.targets(anchors, boxes, 2)
    return model, lambda: test_same_network.loss_of(model(images), *targets) / 256


def language_model() -> Training:
    """The recurrent network of test_emulated_networks.py."""
    sizes: dict[str, tuple[int, ...]] = {"embedding": (20, 8), "output.weight": (12, 20), "output.bias": (20,)}
    sizes |= {"gru.input_weight": (8, 36), "gru.hidden_weight": (12, 36)}
    sizes |= {"gru.input_bias": (36,), "gru.hidden_bias": (36,)}
    weights = {f"model.{name}": seeded(*shape, scale=0.3) for name, shape in sizes.items()}
    model = test_emulated_networks.LanguageModel(weights)
    tokens = torch.randint(20, (7, 3), generator=torch.Generator().manual_seed(0))
    return model, lambda: nn.functional.cross_entropy(model(tokens[:-1]).flatten(0, 1), tokens[1:].flatten())


def half(make: Callable[[], Training], kind: torch.dtype) -> Training:
    model, loss = make()
    model.to(kind)
    return model, loss


def checkpointed() -> Training:
    model = Network(checkpoints=True)
    return model, lambda: model(seeded(6, 5)).square().mean()


def fused_attention() -> Training:
    model, x = test_emulated_attention.Attention(is_causal=True), seeded(4, 6, 16)
    return model, lambda: model(x).square().mean()


def dropped() -> Training:
    """Random numbers in the forward pass."""
    model = nn.Sequential(nn.Linear(12, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Dropout(0.3), nn.Linear(24, 4))
    return model, lambda: nn.functional.cross_entropy(model(seeded(16, 12)), torch.arange(16) % 4)


NETWORKS: dict[str, Callable[[], Training]] = {
    "detector": detector, "language model": language_model, "checkpointed": checkpointed, "dropped": dropped,
    "fused attention": fused_attention,
    **{f"small {name}": make for name, make in small_models.MODELS.items()},
    **foreign_networks.OF_PYTORCH, **foreign_networks.OF_OTHERS,
}  # fmt: skip
HALF = {
    f"{name} in {kind}": partial(half, small_models.MODELS[name], getattr(torch, kind))
    for name in ("unet", "encoder", "llama")
    for kind in ("float16", "bfloat16")
}


@dataclass(frozen=True)
class Emulated:
    """Settings of an emulated training."""

    policy: str | Mapping[str, str] = "fp16_mixed"
    options: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 2
    scale: float | None = None
    passes: int = 1  # backward passes of a step

    def run(self, make: Callable[[], Training]) -> dict[str, Any]:
        model, loss_of = make()
        optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-4)
        scaler = None if self.scale is None else GradScaler(self.scale)
        losses = []
        with emulate(model, self.policy, optimizer=optimizer, scaler=scaler, **self.options) as emulation:
            for _ in range(self.steps):
                optimizer.zero_grad()
                for _ in range(self.passes):
                    losses.append(train_on(loss_of(), scaler))
                update(optimizer, scaler)
        found = {"losses": losses, **of_emulation(emulation), **of_model(model), "optimizer": optimizer.state_dict()}
        if self.options.get("zeros"):
            found |= {"zeros": str(emulation.zeros()), "zeros by tensor": zeros_of(emulation)}
        if self.options.get("floor"):
            comparison = emulation.compare_to(floor=True)
            found |= {"floor": str(comparison), "signed errors": comparison.casts}
        return found


def train_on(loss: torch.Tensor, scaler: Any) -> float:
    (loss if scaler is None else scaler.scale(loss)).backward()
    return loss.item()


def update(optimizer: torch.optim.Optimizer, scaler: Any) -> None:
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()


def zeros_of(emulation: Any) -> dict[str, Any]:
    return {tensor: vars(emulation.zeros()[tensor]) for tensor in emulation.zeros()}


STOCHASTIC = {"weight_gradient": "bf16", "master_weight": "bf16/stochastic", "optimizer_state": "bf16/stochastic"}
FP8 = {"weight": "fp8_e4m3", "activation": "fp8_e4m3", "activation_gradient": "fp8_e5m2", "weight_gradient": "fp8_e5m2"}
# Every option of `emulate` that changes what is computed or counted.
SETTINGS: dict[str, Emulated] = {
    "scaled": Emulated(scale=2.0**16, steps=3),
    "overflowing": Emulated(scale=2.0**40, steps=3),
    "zeros": Emulated(options={"zeros": True}),
    "floor": Emulated(options={"floor": True}),
    "stochastic": Emulated(STOCHASTIC),
    "fp8": Emulated(FP8),
    "split": Emulated("bf16", {"order": "split_k(4, bf16)"}),
    "narrow sums": Emulated("fp16", {"order": "fp16_sequential", "sum_order": "fp16_sequential"}),
    "accumulated": Emulated("fp16", {"gradient_sum": "bf16"}, passes=3),
    "pytorch's sums": Emulated("fp16", {"order": "pytorch"}),
    "not compared": Emulated("fp16_pure", {"compare_steps": (), "every": 1, "strict": False}),
    "operations in fp32": Emulated(options={"exceptions": {"*:softmaxes": "fp32", "*:norms": "fp32"}}),
    "another seed": Emulated(STOCHASTIC, {"seed": 7}),
}
ATTENTION = {name: Emulated(options={"attention": name, "zeros": True}) for name in ("math", "tiled", "tiled(256)")}
FEW = ("detector", "checkpointed", "small encoder")  # networks of every setting


def policies() -> dict[str, Emulated]:
    return {row["policy"]: Emulated(row["policy"]) for row in _core.policy_table()}


def emulated_cases() -> dict[str, Callable[[], dict[str, Any]]]:
    """By name: each network under two policies, a few under every policy and with every setting."""
    chosen = {f"{name}, {policy}": (make, Emulated(policy)) for name, make in NETWORKS.items()
              for policy in ("fp16_mixed", "bf16")}  # fmt: skip
    chosen |= {f"{name}, {policy}": (make, Emulated(policy)) for name, make in HALF.items()
               for policy in ("fp32", "fp16_mixed")}  # fmt: skip
    chosen |= {f"detector, {name}": (detector, each) for name, each in policies().items()}
    chosen |= {f"{name}, {each}": (NETWORKS[name], SETTINGS[each]) for name in FEW for each in SETTINGS}
    chosen |= {f"fused attention, {name}": (fused_attention, each) for name, each in ATTENTION.items()}
    return {f"train/{name}": partial(each.run, make) for name, (make, each) in chosen.items()}


class Board:
    """A SummaryWriter that keeps its scalars and histograms."""

    def __init__(self) -> None:
        self.written: list[tuple[Any, ...]] = []

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.written.append((name, float(value), step))

    def add_histogram_raw(self, name: str, **about: Any) -> None:
        self.written.append((name, about))

    def flush(self) -> None:
        pass


def watched_training(make: Callable[[], Training], options: Mapping[str, Any], scale: float | None) -> dict[str, Any]:
    model, loss_of = make()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, eps=1e-4)
    scaler, board = None if scale is None else GradScaler(scale), Board()

    def run(folder: Any) -> dict[str, Any]:
        with watch(model, 2, optimizer=optimizer, scaler=scaler, out=folder, tensorboard=board, **options) as found:
            for _ in range(3):
                optimizer.zero_grad()
                found.log(train_on(loss_of(), scaler))
                update(optimizer, scaler)
        return {**of_watch(found), "board": board.written, **of_model(model)}

    return with_folder(run)


WATCHED: dict[str, tuple[Mapping[str, Any], float | None]] = {
    "fp16": ({}, None), "bf16": ({"format": "bf16"}, None), "fp8_e4m3": ({"format": "fp8_e4m3"}, None),
    "mxfp4": ({"format": "mxfp4", "observe_roles": "optimizer_state"}, None), "nvfp4": ({"format": "nvfp4"}, None),
    "states": ({"observe_roles": "optimizer_state"}, None), "scaled": ({}, 2.0**16), "overflowing": ({}, 2.0**140),
    "layers alone": ({"operations": False}, None),
}  # fmt: skip


def watched_cases() -> dict[str, Callable[[], dict[str, Any]]]:
    chosen = {f"{name}, fp16": (make, WATCHED["fp16"]) for name, make in NETWORKS.items()}
    chosen |= {f"{name}, {each}": (NETWORKS[name], WATCHED[each]) for name in FEW for each in WATCHED}
    chosen |= {f"{name}, fp16": (make, WATCHED["fp16"]) for name, make in HALF.items()}
    return {f"watch/{name}": partial(watched_training, make, *each) for name, (make, each) in chosen.items()}
