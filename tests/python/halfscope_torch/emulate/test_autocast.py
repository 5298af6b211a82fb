"""The lists of the policy autocast_cpu beside PyTorch's: the type of each operation's output under torch.autocast."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch.nn import functional

from command import command

pytestmark = pytest.mark.torch

KERNEL, TRANSLATE = (torch.rand(3, 2, 3, 3), torch.rand(3, 4))


def images(dtype: torch.dtype) -> torch.Tensor:
    return torch.rand(2, 2, 6, 6).to(dtype)


def rows(dtype: torch.dtype) -> torch.Tensor:
    return torch.rand(2, 4).to(dtype)


CLASSES = torch.tensor([0, 1])
CALLS: dict[str, Callable[[torch.dtype], torch.Tensor]] = {
    "conv2d": lambda t: functional.conv2d(images(t), KERNEL),
    "conv_transpose2d": lambda t: functional.conv_transpose2d(images(t), KERNEL.transpose(0, 1)),
    "linear": lambda t: functional.linear(rows(t), TRANSLATE),
    "matmul": lambda t: torch.matmul(rows(t), TRANSLATE.T),
    "gru": lambda t: torch.nn.GRU(4, 3)(rows(t)[None])[0],
    "add": lambda t: rows(t) + rows(t),
    "mul": lambda t: rows(t) * 2.5,
    "cat": lambda t: torch.cat([rows(t), rows(t)]),
    "index_select": lambda t: torch.index_select(rows(t), 0, CLASSES),
    "dropout": lambda t: functional.dropout(rows(t)),
    "relu": lambda t: functional.relu(rows(t)),
    "leaky_relu": lambda t: functional.leaky_relu(rows(t)),
    "sigmoid": lambda t: torch.sigmoid(rows(t)),
    "tanh": lambda t: torch.tanh(rows(t)),
    "gelu": lambda t: functional.gelu(rows(t)),
    "silu": lambda t: functional.silu(rows(t)),
    "max_pool2d": lambda t: functional.max_pool2d(images(t), 2),
    "avg_pool2d": lambda t: functional.avg_pool2d(images(t), 2),
    "adaptive_avg_pool2d": lambda t: functional.adaptive_avg_pool2d(images(t), 1),
    "upsample_nearest": lambda t: functional.interpolate(images(t), scale_factor=2),
    "batch_norm": lambda t: torch.nn.BatchNorm2d(2)(images(t)),
    "local_response_norm": lambda t: functional.local_response_norm(images(t), 3),
    "softmax": lambda t: functional.softmax(rows(t), 1),
    "cross_entropy": lambda t: functional.cross_entropy(rows(t), CLASSES),
    "binary_cross_entropy": lambda t: functional.binary_cross_entropy(rows(t), rows(t)),
    "binary_cross_entropy_with_logits": lambda t: functional.binary_cross_entropy_with_logits(rows(t), rows(t)),
    "smooth_l1_loss": lambda t: functional.smooth_l1_loss(rows(t), rows(t)),
    "kl_div": lambda t: functional.kl_div(rows(t), rows(t)),
    "cosine_embedding_loss": lambda t: functional.cosine_embedding_loss(rows(t), rows(t), torch.ones(2)),
}  # fmt: skip
# A layer norm of BF16 with FP32 parameters, which a CPU refuses before PyTorch 2.0; recurrent layers, whose types
# differ between versions; what has no inputs, or no counterpart of its own.
NOT_CALLED = {
    "input", "layer_norm", "rms_norm", "lstm", "ctc_loss", "embedding", "roi_pool", "sampled_logits", "total_loss",
}  # fmt: skip


@pytest.fixture(scope="module")
def lists() -> dict[str, dict[str, str]]:
    operations = json.loads(command("list", "operations"))["operations"]
    return {operation["name"]: operation["policies"]["autocast_cpu"] for operation in operations}


def test_every_operation_is_called_or_named(lists: dict[str, dict[str, str]]) -> None:
    assert set(lists) == set(CALLS) | NOT_CALLED


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_output_has_pytorchs_type(lists: dict[str, dict[str, str]], name: str, dtype: torch.dtype) -> None:
    own = "bf16" if dtype is torch.bfloat16 else "fp32"
    expected = lists[name]["output"].replace("widest", own)
    if name == "conv_transpose2d" and torch.__version__.startswith("1."):
        expected = "fp32"  # on the list of BF16 since PyTorch 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = CALLS[name](dtype).dtype
    assert {torch.bfloat16: "bf16", torch.float32: "fp32"}[found] == expected
