"""The hooks of docs/guides/files-of-tensors.md on a model with an in-place ReLU, a frozen and an unused parameter."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from doc_blocks import read_blocks
from recording.source_tree import ROOT


class Block(torch.nn.Module):
    """As ResNet's: the output of a layer is changed in place, one layer is frozen, one parameter is not used."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu = torch.nn.Linear(20, 64), torch.nn.ReLU(inplace=True)
        self.second, self.frozen = torch.nn.Linear(64, 64), torch.nn.Linear(64, 5).requires_grad_(False)
        self.unused = torch.nn.Parameter(torch.ones(3))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.relu(self.first(inputs))
        return self.frozen(hidden + self.relu(self.second(hidden)))


def test_the_hooks_keep_every_gradient_of_a_real_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs/guides/files-of-tensors.md"
    (code,) = [block.code for block in read_blocks(page) if "numpy.savez" in block.code]
    code, changed = re.subn(r"^model = .*$", "model = Block()", code, flags=re.MULTILINE)
    assert changed == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(code, page.name, "exec"), {"Block": Block, "__name__": "__docs__"})
    kept = np.load(tmp_path / "gradients.npz")
    weights = {"first.weight.grad", "first.bias.grad", "second.weight.grad", "second.bias.grad"}
    assert set(kept) == weights | {f"{name}.grad" for name in ("", "first", "relu", "second", "frozen")}
    assert all(np.isfinite(kept[name]).all() for name in kept)
