"""The translators in FP32 beside PyTorch's float64: the loss and the gradient of every parameter."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.nn import functional

from exported_training import check_step, export_training, leaves_of
from torch_translation_networks import Sentences, Seq2Seq, Transformer

pytestmark = pytest.mark.torch

LAYERS, HEADS, BATCH = 3, 2, 8
# A step of SGD without momentum at a rate of 1 takes the gradient off the weights.
SETTINGS = (
    "dataset=gettext_en_fr", "vocabulary=100", "embedding_size=24", "hidden_size=40", f"layers={LAYERS}",
    "steps=1", f"batch={BATCH}", "optimizer=sgd", "momentum=0", "learning_rate=1", "schedule=constant", "policy=fp32",
)  # fmt: skip
OPTIONS = {"transformer": (f"heads={HEADS}",), "seq2seq_attention": ()}  # options of the models
NETWORKS = {"transformer": Transformer(HEADS, LAYERS), "seq2seq_attention": Seq2Seq(LAYERS)}


def write_pairs(file: Path) -> None:
    """Sentences of 3 to 8 words, and in other words."""
    numbers = random.Random(1)
    lines = []
    for i in range(40):
        source, target = ([f"{side}{chr(97 + numbers.randrange(20))}" for _ in range(3 + i % 6)] for side in "wv")
        lines.append(" ".join(source) + "\t" + " ".join(target[: 3 + i % 4]) + "\n")
    file.write_text("".join(lines))


def sentences_of(exported: dict[str, torch.Tensor]) -> Sentences:
    lengths = exported["lengths.0"].long()
    return Sentences(
        exported["tokens.0"].long().reshape(len(lengths), -1),
        exported["decoder_tokens.0"].long().reshape(len(lengths), -1),
        lengths,
        exported["label_counts.0"].long(),
        exported["labels.0"].long(),
    )


@pytest.mark.parametrize("model", NETWORKS)
def test_loss_and_gradients_agree(model: str, tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs.tsv")
    settings = (f"model={model}", f"data={tmp_path / 'pairs.tsv'}", *SETTINGS, *OPTIONS[model])
    exported = export_training(tmp_path / "step.safetensors", *settings)
    leaves = leaves_of(exported)
    batch = sentences_of(exported)
    assert len(set(batch.source_lengths.tolist())) > 1
    assert len(set(batch.target_lengths.tolist())) > 1
    check_step(exported, leaves, functional.cross_entropy(NETWORKS[model](leaves, batch), batch.labels))
