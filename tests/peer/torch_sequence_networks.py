"""Speech, translation, BERT and the bigLSTM for PyTorch on random batches of the usual sizes, to be timed."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from torch_translation_networks import Sentences, Seq2Seq, Transformer

BATCH = 64
# Means of the batches of experiment translation-loss-scale.
SOURCE_TOKENS, TARGET_TOKENS, WORDS = 8, 10, 3000
WIDTH, LSTM_STATES, FEED_FORWARD, LAYERS, HEADS = 96, 128, 256, 2, 4


class Translator(nn.Module):
    """A network of `torch_translation_networks` with parameters of its own."""

    def __init__(self, network: Transformer | Seq2Seq, shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.network, self.names = network, list(shapes)
        self.values = nn.ParameterList([nn.Parameter(0.1 * torch.randn(shape)) for shape in shapes.values()])

    def forward(self, batch: Sentences) -> torch.Tensor:
        return self.network(dict(zip(self.names, self.values, strict=True)), batch)


def attention_shapes(name: str) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"{name}.norm.gamma": (WIDTH,), f"{name}.norm.beta": (WIDTH,)}
    for part in ("query", "key", "value", "output"):
        shapes |= {f"{name}.{part}.weight": (WIDTH, WIDTH), f"{name}.{part}.bias": (WIDTH,)}
    return shapes


def feed_forward_shapes(name: str) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"{name}.norm.gamma": (WIDTH,), f"{name}.norm.beta": (WIDTH,)}
    shapes |= {f"{name}.inner.weight": (WIDTH, FEED_FORWARD), f"{name}.inner.bias": (FEED_FORWARD,)}
    return shapes | {f"{name}.outer.weight": (FEED_FORWARD, WIDTH), f"{name}.outer.bias": (WIDTH,)}


def embedding_shapes(states: int) -> dict[str, tuple[int, ...]]:
    """With the output's."""
    tables: dict[str, tuple[int, ...]] = {f"{side}_embedding": (WORDS, WIDTH) for side in ("source", "target")}
    return tables | {"output.weight": (states, WORDS), "output.bias": (WORDS,)}


def transformer() -> nn.Module:
    shapes = embedding_shapes(WIDTH)
    for layer in range(1, LAYERS + 1):
        for name in (f"encoder{layer}.self", f"decoder{layer}.self", f"decoder{layer}.source"):
            shapes |= attention_shapes(name)
        for name in (f"encoder{layer}.feed_forward", f"decoder{layer}.feed_forward"):
            shapes |= feed_forward_shapes(name)
    shapes |= {f"{side}.norm.{part}": (WIDTH,) for side in ("encoder", "decoder") for part in ("gamma", "beta")}
    return Translator(Transformer(HEADS, LAYERS), shapes)


def seq2seq() -> nn.Module:
    gates = 4 * LSTM_STATES
    shapes = embedding_shapes(LSTM_STATES)
    for name in ("encoder1", "decoder1"):
        shapes |= {f"{name}.input_weight": (WIDTH, gates), f"{name}.hidden_weight": (LSTM_STATES, gates)}
        shapes |= {f"{name}.input_bias": (gates,), f"{name}.hidden_bias": (gates,)}
    for name, inputs in (("compare", LSTM_STATES), ("combine", 2 * LSTM_STATES)):
        shapes |= {f"{name}.weight": (inputs, LSTM_STATES), f"{name}.bias": (LSTM_STATES,)}
    return Translator(Seq2Seq(1), shapes)


def translation_loss(network: nn.Module) -> Callable[[], torch.Tensor]:
    def random_tokens(time: int) -> torch.Tensor:
        return torch.randint(4, WORDS, (BATCH, time))

    def loss() -> torch.Tensor:
        lengths, target_lengths = (torch.full((BATCH,), time) for time in (SOURCE_TOKENS, TARGET_TOKENS))
        labels = random_tokens(TARGET_TOKENS).flatten()
        source, target = random_tokens(SOURCE_TOKENS), random_tokens(TARGET_TOKENS)
        return functional.cross_entropy(network(Sentences(source, target, lengths, target_lengths, labels)), labels)

    return loss


class BigLstm(nn.Module):
    """The loss of words (time, batch) over their labels and sampled words, as sim/models/big_lstm.cpp has it."""

    def __init__(self, words: int = 4096, width: int = 64, hidden: int = 128) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.cells = nn.LSTM(width, hidden, num_layers=2, proj_size=width)
        self.weight, self.bias = nn.Embedding(words, width), nn.Embedding(words, 1)
        self.words = words

    def forward(self, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        states = self.cells(self.table(tokens))[0].flatten(0, 1)
        labels, samples = labels.flatten(), torch.randperm(self.words)[: self.words // 8]
        own = (states * self.weight(labels)).sum(1, keepdim=True) + self.bias(labels)
        others = states @ self.weight(samples).t() + self.bias(samples).t()
        others = others - 1e4 * (samples[None] == labels[:, None])
        return functional.cross_entropy(torch.cat([own, others], dim=1), torch.zeros_like(labels))


def big_lstm_loss(network: nn.Module, time: int = 32) -> Callable[[], torch.Tensor]:
    def loss() -> torch.Tensor:
        return network(torch.randint(4096, (time, BATCH)), torch.randint(4096, (time, BATCH)))

    return loss


class DeepSpeech2(nn.Module):
    """sim/models/deep_speech_2.cpp: logits (time, batch, labels) of features (batch, time, 40)."""

    def __init__(self, hidden: int = 96, labels: int = 17) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, stride=(2, 2), padding=2)
        self.conv2 = nn.Conv2d(16, 16, 5, stride=(1, 2), padding=2)
        self.gru, self.output = nn.GRU(160, hidden, bidirectional=True), nn.Linear(2 * hidden, labels)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.conv2(torch.relu(self.conv1(features[:, None]))))
        return self.output(self.gru(x.permute(2, 0, 3, 1).flatten(2))[0])


def speech_loss(network: nn.Module, batch: int = 32, frames: int = 72, letters: int = 14) -> Callable[[], torch.Tensor]:
    """Utterances of the mean length of spoken_digits."""
    steps, counts = torch.full((batch,), (frames + 1) // 2), torch.full((batch,), letters)

    def loss() -> torch.Tensor:
        log_shares = network(torch.randn(batch, frames, 40)).log_softmax(2)
        return functional.ctc_loss(log_shares, torch.randint(1, 17, (batch, letters)), steps, counts, reduction="sum")

    return loss


class Jasper(nn.Module):
    """sim/models/jasper.cpp at its small width: logits (time, batch, labels) of features (batch, time, 40)."""

    CHANNELS = (16, 16, 24, 24, 32, 32, 40, 40, 48, 48)
    FRAMES = (11, 11, 13, 13, 17, 17, 21, 21, 25, 25)

    def __init__(self, labels: int = 17) -> None:
        super().__init__()
        self.first = self.normalised(40, 16, 11, stride=2)
        self.blocks, self.residuals = nn.ModuleList(), nn.ModuleList()
        sources = [16]
        for channels, frames in zip(self.CHANNELS, self.FRAMES, strict=True):
            inputs = (sources[-1], *4 * (channels,))
            self.blocks.append(nn.ModuleList([self.normalised(before, channels, frames) for before in inputs]))
            self.residuals.append(nn.ModuleList([self.normalised(before, channels, 1) for before in sources]))
            sources.append(channels)
        self.last = nn.Sequential(
            self.normalised(48, 56, 29), nn.ReLU(), self.normalised(56, 64, 1), nn.ReLU(), nn.Conv1d(64, labels, 1)
        )

    @staticmethod
    def normalised(before: int, channels: int, frames: int, stride: int = 1) -> nn.Module:
        convolution = nn.Conv1d(before, channels, frames, stride=stride, padding=frames // 2, bias=False)
        return nn.Sequential(convolution, nn.BatchNorm1d(channels))

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(features.transpose(1, 2)))
        before: list[torch.Tensor] = []
        for block, residuals in zip(self.blocks, self.residuals, strict=True):
            before.append(x)
            for convolution in block[:-1]:
                x = torch.relu(convolution(x))
            x = block[-1](x)
            for residual, earlier in zip(residuals, before, strict=True):
                x = x + residual(earlier)
            x = torch.relu(x)
        return self.last(x).permute(2, 0, 1)


class Bert(nn.Module):
    """sim/models/bert.cpp with the heads of its pre-training, of PyTorch's own layers."""

    def __init__(self, words: int = 4096, width: int = 128, hidden: int = 512, time: int = 32) -> None:
        super().__init__()
        self.words, self.positions = nn.Embedding(words, width), nn.Parameter(0.05 * torch.randn(time, width))
        self.segments, self.norm = nn.Embedding(2, width), nn.LayerNorm(width, eps=1e-12)
        layer = nn.TransformerEncoderLayer(width, 2, hidden, 0.1, functional.gelu, 1e-12, batch_first=True)
        self.encoder, self.pooler = nn.TransformerEncoder(layer, 2), nn.Linear(width, width)
        self.dense, self.dense_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        self.bias, self.next_sentence = nn.Parameter(torch.zeros(words)), nn.Linear(width, 2)

    def forward(
        self, tokens: torch.Tensor, segments: torch.Tensor, hidden: torch.Tensor, masked: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of the masked words and of the next sentence."""
        x = self.norm(self.words(tokens) + self.positions + self.segments(segments))
        states = self.encoder(functional.dropout(x, 0.1), src_key_padding_mask=hidden)
        x = self.dense_norm(functional.gelu(self.dense(states.flatten(0, 1)[masked])))
        return functional.linear(x, self.words.weight, self.bias), self.next_sentence(
            torch.tanh(self.pooler(states[:, 0]))
        )


def bert_loss(network: nn.Module, batch: int = 32, time: int = 32, masked: int = 4) -> Callable[[], torch.Tensor]:
    """Pairs of verses that fill their examples, and their mean number of masked words."""

    def loss() -> torch.Tensor:
        tokens, segments = torch.randint(5, 4096, (batch, time)), torch.randint(0, 2, (batch, time))
        places = torch.randperm(batch * time)[: batch * masked]
        words, follows = network(tokens, segments, torch.zeros(batch, time, dtype=torch.bool), places)
        own = functional.cross_entropy(words, torch.randint(5, 4096, (batch * masked,)))
        return own + functional.cross_entropy(follows, torch.randint(0, 2, (batch,)))

    return loss
