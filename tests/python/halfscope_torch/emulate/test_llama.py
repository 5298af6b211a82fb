"""The llama and Muon in FP32 beside PyTorch's definitions in float64: loss, gradients and an update."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", minversion="2.9", reason="PyTorch 2.9, which has Muon, is not installed")
from torch.nn import functional

from exported_training import check_step, export_training, leaves_of
from torch_llama import Llama

pytestmark = pytest.mark.torch

LAYERS, BATCH, TIME = 2, 4, 24
SETTINGS = (
    "model=llama", "dataset=kjv_text", "vocabulary=300", "embedding_size=32", "hidden_size=40", f"layers={LAYERS}",
    f"sequence_length={TIME}", "steps=1", f"batch={BATCH}", "schedule=constant", "policy=fp32",
)  # fmt: skip
# Takes the gradient off the weights.
SGD = ("optimizer=sgd", "momentum=0", "learning_rate=1")


Tensors = dict[str, torch.Tensor]


def loss_of(exported: Tensors, leaves: Tensors, heads: int, key_value_heads: int) -> torch.Tensor:
    tokens = exported["tokens.0"].long().reshape(BATCH, TIME)
    logits = Llama(heads, key_value_heads, LAYERS).logits(leaves, tokens)
    return functional.cross_entropy(logits.flatten(0, 1), exported["labels.0"].long())


@pytest.mark.parametrize(("heads", "key_value_heads"), [(4, 4), (4, 2), (4, 1)])
def test_loss_and_gradients_agree(heads: int, key_value_heads: int, tmp_path: Path) -> None:
    grouping = (f"heads={heads}", f"key_value_heads={key_value_heads}")
    exported = export_training(tmp_path / "step.safetensors", *SETTINGS, *SGD, *grouping)
    leaves = leaves_of(exported)
    check_step(exported, leaves, loss_of(exported, leaves, heads, key_value_heads))


def orthogonalised(matrix: torch.Tensor) -> torch.Tensor:
    """Five Newton-Schulz steps as torch.optim.Muon has them, in the matrix's precision."""
    x = matrix / matrix.norm()
    x = x.T if x.shape[0] > x.shape[1] else x
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def distance(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    return float((ours - theirs).norm() / theirs.norm())


def test_a_step_of_muon_agrees(tmp_path: Path) -> None:
    exported = export_training(
        tmp_path / "step.safetensors", *SETTINGS, "optimizer=muon", "learning_rate=1", "weight_decay=0.1",
        "newton_schulz_exponent_bits=8", "newton_schulz_mantissa_bits=23",
    )  # fmt: skip
    leaves = leaves_of(exported)
    loss_of(exported, leaves, 4, 2).backward()
    for name, leaf in leaves.items():
        if leaf.dim() != 2 or name in ("embedding", "output.weight"):
            continue
        before, after = (exported[f"{when}model.{name}"].double() for when in ("", "after."))
        assert leaf.grad is not None, name
        direction = 0.2 * max(before.shape) ** 0.5 * orthogonalised(leaf.grad)
        assert distance(after, before - direction - 0.1 * before) < 1e-4, name
        # PyTorch's weights are (out, in), and its steps are in BF16.
        theirs = torch.nn.Parameter(before.T.float().contiguous())
        theirs.grad = leaf.grad.T.float().contiguous()
        torch.optim.Muon([theirs], lr=1.0, weight_decay=0.1, adjust_lr_fn="match_rms_adamw").step()
        assert distance(after, theirs.detach().T.double()) < 0.05, name
