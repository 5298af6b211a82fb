"""CTC and Deep Speech 2 in FP32 beside PyTorch's float64: the loss and the gradient of every parameter."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from exported_training import export_training
from recordings import write_recordings

pytestmark = pytest.mark.torch

HIDDEN, BATCH, STRIDE = 24, 6, 2
# A step of SGD without momentum at a rate of 1 takes the gradient off the weights.
SETTINGS = (
    "model=deep_speech_2", "dataset=spoken_digits", f"hidden_size={HIDDEN}", "steps=1", f"batch={BATCH}",
    "optimizer=sgd", "momentum=0", "learning_rate=1", "schedule=constant", "policy=fp32",
)  # fmt: skip


def gru_of(weights: dict[str, torch.Tensor], name: str) -> torch.nn.GRU:
    """Our matrices are the transposes of PyTorch's."""
    inputs = weights[f"model.{name}.input_weight"].shape[0]
    gru = torch.nn.GRU(inputs, HIDDEN).double()
    for ours, theirs in (("input_weight", "weight_ih_l0"), ("hidden_weight", "weight_hh_l0")):
        getattr(gru, theirs).data = weights[f"model.{name}.{ours}"].t().double().contiguous()
    for ours, theirs in (("input_bias", "bias_ih_l0"), ("hidden_bias", "bias_hh_l0")):
        getattr(gru, theirs).data = weights[f"model.{name}.{ours}"].double().clone()
    return gru


def run_gru(gru: torch.nn.GRU, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Packed sequences: PyTorch computes no padding at all."""
    packed = pack_padded_sequence(x, steps, enforce_sorted=False)
    return pad_packed_sequence(gru(packed)[0], total_length=len(x))[0]


def flipped(x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Each utterance of (time, batch, features) from its own last step to its first."""
    result = torch.zeros_like(x)
    for b, count in enumerate(steps.tolist()):
        result[:count, b] = x[:count, b].flip(0)
    return result


def test_loss_and_gradients_agree(tmp_path: Path) -> None:
    write_recordings(tmp_path)
    exported = export_training(tmp_path / "step.safetensors", f"data={tmp_path}", *SETTINGS)
    names = [name for name in exported if name.startswith("model.")]
    leaves = {name: exported[name].double().requires_grad_() for name in names if "gru" not in name}
    frames, counts = exported["lengths.0"].long(), exported["label_counts.0"].long()
    assert len(set(frames.tolist())) == BATCH
    steps = (frames + STRIDE - 1) // STRIDE
    spoken = (torch.arange(int(steps.max()))[None] < steps[:, None]).double()  # (batch, time)

    def convolve(x: torch.Tensor, name: str, stride: tuple[int, int]) -> torch.Tensor:
        kernel = leaves[f"model.{name}.weight"].permute(3, 2, 0, 1)
        y = functional.conv2d(x, kernel, leaves[f"model.{name}.bias"], stride=stride, padding=2)
        return torch.relu(y) * spoken[:, None, :, None]

    x = convolve(exported["images.0"].double()[:, None], "conv1", (2, 2))
    x = convolve(x, "conv2", (1, 2))
    x = x.permute(2, 0, 3, 1).flatten(2)  # (time, batch, frequency and channel)
    ahead, back = gru_of(exported, "gru.forward"), gru_of(exported, "gru.backward")
    states = torch.cat([run_gru(ahead, x, steps), flipped(run_gru(back, flipped(x, steps), steps), steps)], dim=2)
    logits = states @ leaves["model.output.weight"] + leaves["model.output.bias"]
    losses = functional.ctc_loss(
        logits.log_softmax(2), exported["labels.0"].long(), steps, counts, blank=0, reduction="none"
    )
    loss = losses.mean()
    loss.backward()

    assert math.isclose(loss.item(), exported["losses"].item(), rel_tol=1e-5)
    gradients = {name: leaf.grad for name, leaf in leaves.items()}
    for name, gru in (("gru.forward", ahead), ("gru.backward", back)):
        gradients[f"model.{name}.input_weight"] = gru.weight_ih_l0.grad.t()
        gradients[f"model.{name}.hidden_weight"] = gru.weight_hh_l0.grad.t()
        gradients[f"model.{name}.input_bias"] = gru.bias_ih_l0.grad
        gradients[f"model.{name}.hidden_bias"] = gru.bias_hh_l0.grad
    assert set(gradients) == set(names)
    for name, gradient in gradients.items():
        ours = exported[name].double() - exported[f"after.{name}"].double()
        # Rounding error of a gradient taken from the difference of two weights.
        rounding = 2.0**-23 * float(exported[name].norm())
        assert gradient is not None
        assert float((ours - gradient).norm()) < 1e-4 * float(gradient.norm()) + rounding, name
