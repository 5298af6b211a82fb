"""BERT and a distillation in FP32 beside PyTorch's float64: losses and gradients."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.nn import functional

from exported_training import check_step, export_training
from torch_bert import Bert, Verses, distillation_loss, masked

pytestmark = pytest.mark.torch

LAYERS, HEADS, BATCH, TIME = 2, 2, 8, 64
# A step of SGD without momentum at a rate of 1 takes the gradient off the weights.
SETTINGS = (
    "model=bert", "vocabulary=300", "embedding_size=24", "hidden_size=40", f"layers={LAYERS}", f"heads={HEADS}",
    f"sequence_length={TIME}", "steps=1", f"batch={BATCH}", "optimizer=sgd", "momentum=0", "learning_rate=1",
    "schedule=constant", "policy=fp32",
)  # fmt: skip


Tensors = dict[str, torch.Tensor]


def batch_of(exported: Tensors) -> Verses:
    lengths = exported["lengths.0"].long()
    tokens = exported["tokens.0"].long().reshape(len(lengths), -1)
    segments = exported["segments.0"].long()
    segments = segments.reshape(tokens.shape) if len(segments) else torch.zeros_like(tokens)
    return Verses(tokens, segments, lengths)


def weights_of(exported: Tensors) -> Tensors:
    return {
        name.removeprefix("model."): values.double() for name, values in exported.items() if name.startswith("model.")
    }


def loss_of(exported: Tensors, leaves: Tensors) -> torch.Tensor:
    labels = exported["labels.0"].long()
    bert = Bert(HEADS, LAYERS)
    states = bert.states(leaves, batch_of(exported))
    pooled = bert.pooled(leaves, states)
    if "classifier.weight" in leaves:
        logits = pooled @ leaves["classifier.weight"] + leaves["classifier.bias"]
        return functional.cross_entropy(logits, labels)
    words = bert.word_logits(leaves, states, exported["masked.0"].long())
    follows = pooled @ leaves["next_sentence.weight"] + leaves["next_sentence.bias"]
    return functional.cross_entropy(words, labels) + functional.cross_entropy(follows, exported["follows.0"].long())


@pytest.mark.parametrize("dataset", ["masked_verses", "verse_genre"])
def test_loss_and_gradients_agree(dataset: str, tmp_path: Path) -> None:
    exported = export_training(tmp_path / "step.safetensors", f"dataset={dataset}", *SETTINGS)
    leaves = {name: weight.requires_grad_() for name, weight in weights_of(exported).items()}
    assert len(set(exported["lengths.0"].tolist())) > 1
    check_step(exported, leaves, loss_of(exported, leaves))


def test_a_distillation_agrees(tmp_path: Path) -> None:
    path = tmp_path / "teacher.safetensors"
    teacher = weights_of(export_training(path, "dataset=masked_verses", *SETTINGS))
    exported = export_training(
        tmp_path / "step.safetensors", "dataset=masked_verses", *SETTINGS, "model=distil_bert", "layers=1",
        f"teacher={path}", "seed=3",
    )  # fmt: skip
    leaves = {name: weight.requires_grad_() for name, weight in weights_of(exported).items()}
    assert torch.equal(leaves["encoder1.self.query.weight"], teacher["encoder1.self.query.weight"])
    assert "encoder2.self.query.weight" not in leaves
    batch, places = batch_of(exported), exported["masked.0"].long()
    student = masked(Bert(HEADS, 1), leaves, batch, places)
    targets = masked(Bert(HEADS, LAYERS), teacher, batch, places)
    check_step(exported, leaves, distillation_loss(student, targets, exported["labels.0"].long()))
