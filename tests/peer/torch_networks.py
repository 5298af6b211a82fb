"""halfscope's networks written for PyTorch: the peers that tools/bench_torch.py and tools/bench_amp.py time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn

import torch_sequence_networks as sequences
from torch_classifier_parts import classification_loss
from torch_image_networks import CLASSIFIERS
from torch_llama import LlamaModule, llama_loss

CLASSES = 11  # the detector's, with the background


@dataclass(frozen=True)
class Sizes:
    """Settings with halfscope's names."""

    batch: int = 64
    image_size: int = 64
    vocabulary: int = 4096
    sequence_length: int = 32
    embedding_size: int = 64
    hidden_size: int = 64
    loss_weight: float = 1 / 256


@dataclass
class Training:
    """A network with its data in memory: `loss` runs forward on a random batch."""

    module: nn.Module
    loss: Callable[[], torch.Tensor]
    learning_rate: float
    clip_norm: float = 0.0
    make_optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam

    def optimizer(self) -> torch.optim.Optimizer:
        return self.make_optimizer(self.module.parameters(), lr=self.learning_rate)


def cnn(sizes: Sizes, device: str = "cpu") -> Training:
    """sim/models/cnn_bn.cpp on images of 28x28."""
    network = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    ).to(device)  # fmt: skip
    images = torch.randn(60_000, 1, 28, 28, device=device)
    labels = torch.randint(10, (60_000,), device=device)

    def loss() -> torch.Tensor:
        chosen = torch.randint(60_000, (sizes.batch,), device=device)
        return nn.functional.cross_entropy(network(images[chosen]), labels[chosen])

    return Training(network, loss, 1e-5)


def classifier(model: str, sizes: Sizes, device: str = "cpu") -> Training:
    """A network of sim/models on images of 28x28, with the optimizer of its arms in `image-classifiers`."""
    network = CLASSIFIERS[model](0.5).to(device) if model == "alexnet" else CLASSIFIERS[model]().to(device)
    images = torch.randn(60_000, 1, 28, 28, device=device)
    labels = torch.randint(10, (60_000,), device=device)
    is_inception_v3 = model == "inception_v3"

    def loss() -> torch.Tensor:
        chosen = torch.randint(60_000, (sizes.batch,), device=device)
        return classification_loss(network(images[chosen]), labels[chosen], 0.1 if is_inception_v3 else 0.0)

    rmsprop = partial(torch.optim.RMSprop, alpha=0.9, eps=1e-3, momentum=0.9)
    return Training(
        network, loss, 1e-3, make_optimizer=rmsprop if is_inception_v3 else partial(torch.optim.SGD, momentum=0.9)
    )


class Detector(nn.Module):
    """sim/models/ssd.cpp: predictions (batch, anchor, classes + offsets)."""

    def __init__(self) -> None:
        super().__init__()
        sizes = ((1, 16), (16, 32), (32, 64), (64, 64))
        self.body = nn.ModuleList(nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU()) for i, o in sizes)
        self.heads = nn.ModuleList(nn.Conv2d(64, 3 * (CLASSES + 4), 3, padding=1) for _ in range(2))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        pool, body = nn.functional.max_pool2d, self.body
        fine = body[2](pool(body[1](pool(body[0](images), 2)), 2))
        maps = (self.heads[0](fine), self.heads[1](body[3](pool(fine, 2))))
        return torch.cat([m.permute(0, 2, 3, 1).reshape(len(images), -1, CLASSES + 4) for m in maps], dim=1)


def detector(sizes: Sizes, device: str = "cpu") -> Training:
    """On scenes and matched anchors that are in memory already."""
    network = Detector().to(device)
    anchors = 3 * ((sizes.image_size // 4) ** 2 + (sizes.image_size // 8) ** 2)
    count = min(3000, max(2 * sizes.batch, 3000 * 64**2 // sizes.image_size**2))
    scenes = torch.randn(count, 1, sizes.image_size, sizes.image_size, device=device)
    labels = torch.randint(CLASSES, (count, anchors), device=device)
    labels *= torch.rand(count, anchors, device=device) < 0.02
    offsets = torch.randn(count, anchors, 4, device=device)

    def loss() -> torch.Tensor:
        chosen = torch.randint(count, (sizes.batch,), device=device)
        rows, target = network(scenes[chosen]), labels[chosen]
        matched = target > 0
        value = nn.functional.cross_entropy(rows[..., :CLASSES].flatten(0, 1), target.flatten(), reduction="sum")
        found, wanted = rows[..., CLASSES:][matched], offsets[chosen][matched]
        value = value + nn.functional.smooth_l1_loss(found, wanted, reduction="sum")
        return value / target.numel() * sizes.loss_weight

    return Training(network, loss, 2e-3)


class LanguageModel(nn.Module):
    """sim/models/language_model.cpp with a GRU: logits (time, batch, vocabulary)."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.table = nn.Embedding(sizes.vocabulary, sizes.embedding_size)
        self.cell = nn.GRU(sizes.embedding_size, sizes.hidden_size)
        self.output = nn.Linear(sizes.hidden_size, sizes.vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.output(self.cell(self.table(tokens))[0])


def language_model(sizes: Sizes, device: str = "cpu") -> Training:
    """With clipping, on windows of a text that is in memory already."""
    network = LanguageModel(sizes).to(device)
    text = torch.randint(sizes.vocabulary, (900_000,), device=device)
    window = torch.arange(sizes.sequence_length, device=device)[:, None]

    def loss() -> torch.Tensor:
        positions = torch.randint(len(text) - sizes.sequence_length, (sizes.batch,), device=device) + window
        logits = network(text[positions])
        value = nn.functional.cross_entropy(logits.flatten(0, 1), text[positions + 1].flatten())
        return value * sizes.loss_weight

    return Training(network, loss, 3e-3, clip_norm=1.0)


def sequence_network(name: str, sizes: Sizes, device: str = "cpu") -> Training:
    """Speech, translation, BERT or the bigLSTM, at the sizes of their experiments."""
    del sizes, device
    make_network, make_loss, optimizer = SEQUENCES[name]
    network = make_network()
    return Training(network, make_loss(network), 1e-3, make_optimizer=optimizer)


SEQUENCES = {
    "transformer": (sequences.transformer, sequences.translation_loss, torch.optim.Adam),
    "seq2seq_attention": (sequences.seq2seq, sequences.translation_loss, torch.optim.Adam),
    "big_lstm": (sequences.BigLstm, sequences.big_lstm_loss, torch.optim.Adagrad),
    "deep_speech_2": (sequences.DeepSpeech2, sequences.speech_loss, torch.optim.Adam),
    "jasper": (sequences.Jasper, sequences.speech_loss, torch.optim.Adam),
    "bert": (sequences.Bert, sequences.bert_loss, torch.optim.AdamW),
    "llama": (LlamaModule, llama_loss, torch.optim.AdamW),
}
NETWORKS = {"cnn": cnn, "detector": detector, "language-model": language_model}
NETWORKS |= {model: partial(classifier, model) for model in CLASSIFIERS}
NETWORKS |= {name: partial(sequence_network, name) for name in SEQUENCES}
