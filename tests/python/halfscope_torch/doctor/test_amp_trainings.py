"""Healthy trainings under torch.autocast in FP16 with a GradScaler: every door is quiet after eight steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("torchvision", reason="torchvision is not installed")
from torch import nn
from torch.nn import functional

from halfscope.torch import check, diagnose, emulate, lint, watch
from library_networks import Step, loss_of, normals, step_of, tokens

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

STEPS, SECONDS = 8, 600.0
LIBRARIES = ("Llama", "GPT2", "Bert", "ViT", "Wav2Vec2", "Swin", "efficientnet_b0", "Mamba")


class Tagger(nn.Module):
    """A word's own number from the words around it; 0 is padding."""

    def __init__(self, layers: nn.Module, width: int) -> None:
        super().__init__()
        self.embed, self.layers, self.head = nn.Embedding(96, 32), layers, nn.Linear(width, 96)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        inside = self.embed(ids)
        is_recurrent = isinstance(self.layers, nn.LSTM)
        found = self.layers(inside)[0] if is_recurrent else self.layers(inside, src_key_padding_mask=ids == 0)
        return self.head(found)


def tagged(model: nn.Module) -> Step:
    ids = tokens(4, 12)
    ids[0, 8:] = ids[2, 5:] = 0
    return model, lambda: functional.cross_entropy(model(ids).flatten(0, 1), ids.flatten(), ignore_index=0)


def padded_encoder() -> Step:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return tagged(Tagger(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), 32))


def classified(model: nn.Module, *shape: int) -> Step:
    x = normals(*shape)
    labels = torch.arange(shape[0]) % 5
    return model, lambda: functional.cross_entropy(model(x), labels)


def perceptron() -> Step:
    layers = [nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5)]
    return classified(nn.Sequential(*layers), 32, 20)


def convolutions() -> Step:
    first = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return classified(nn.Sequential(*first, *second, nn.Linear(32, 5)), 16, 3, 16, 16)


OWN: dict[str, Callable[[], Step]] = {"mlp": perceptron, "cnn": convolutions, "padded encoder": padded_encoder}


def train(loss: Callable[[], Any], optimizer: Any, scaler: Any) -> None:
    for _ in range(STEPS):
        optimizer.zero_grad()
        scaler.scale(loss()).backward()
        scaler.step(optimizer)
        scaler.update()
    optimizer.zero_grad()


@pytest.mark.parametrize("name", [*OWN, *LIBRARIES])
def test_a_healthy_training_is_called_healthy(name: str) -> None:
    torch.manual_seed(0)
    model, output = OWN[name]() if name in OWN else step_of(name)

    def loss() -> Any:
        with torch.autocast("cpu", torch.float16):
            return loss_of(output())

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    with watch(model, 1, optimizer=optimizer, scaler=scaler) as watched:
        train(loss, optimizer, scaler)
    assert watched.verdict.startswith("From what FP16 has left: Loss scale 2^")  # no fault stands in front
    for scale in (1.0, scaler.get_scale()):
        found = diagnose(model, loss, "autocast", optimizer=optimizer, scale=scale, seconds=SECONDS)
        assert not found.findings, str(found)
    told = str(check(model, loss, optimizer, "autocast", seconds=SECONDS))
    assert told.startswith(("Nothing to change", "Loss scale 2^")), told
    assert not lint(model, optimizer, "autocast").findings


def test_a_healthy_lstm_is_called_healthy() -> None:
    """Emulated: a CPU has no LSTM in FP16."""
    torch.manual_seed(0)
    model, loss = tagged(Tagger(nn.LSTM(32, 48, batch_first=True), 48))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
    with emulate(model, "autocast_cuda", optimizer=optimizer, scaler=scaler) as emulated:
        train(loss, optimizer, scaler)
    assert emulated.first_overflow is None and scaler.get_scale() == 2.0**16
    found = diagnose(model, loss, "autocast", optimizer=optimizer, scale=2.0**16, seconds=SECONDS)
    assert not found.findings, str(found)
