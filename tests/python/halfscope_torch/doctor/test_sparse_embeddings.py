"""Networks whose embeddings have sparse gradients: the doctor says what it says of the same network with dense ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

from torch import nn

from halfscope.torch import diagnose

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Words(nn.Module):
    """A table of embeddings, sums or rows of it, and a layer."""

    def __init__(self, seed: int, sparse: bool) -> None:
        super().__init__()
        chosen = random.Random(seed)
        width, rows = chosen.choice([4, 16, 33]), chosen.choice([7, 60])
        kind = chosen.choice([nn.Embedding, nn.EmbeddingBag])
        torch.manual_seed(seed)
        self.table = kind(rows, width, sparse=sparse)
        self.layer = nn.Linear(width, 3)
        self.words = torch.randint(rows, (chosen.choice([2, 9]), 5))  # rows that come again are added up
        self.factor = chosen.choice([1.0, 1.0, 400.0])  # the latter overflows as a square

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        h = self.table(words) * self.factor
        return self.layer(h.square().mean(-1, keepdim=True).sqrt() + self.table(words))


def training(seed: int, sparse: bool, updates: bool) -> tuple[Words, Callable[[], Any], torch.optim.Optimizer]:
    model = Words(seed, sparse)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> torch.Tensor:
        loss = model(model.words).square().mean()
        if updates:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    return model, step, optimizer


@pytest.mark.parametrize("seed", range(16))
def test_sparse_gradients_change_no_word(seed: int) -> None:
    texts = []
    for sparse in (True, False):
        model, step, optimizer = training(seed, sparse, updates=seed % 2 == 0)
        before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        found = diagnose(model, step, optimizer=optimizer, seconds=600)
        texts.append([(each.kind, each.change, each.why) for each in found.findings])
        assert all(torch.equal(tensor, model.state_dict()[name]) for name, tensor in before.items())
        assert model.table.weight.grad is None
        assert any(each.kind != "state" for each in found.findings) == (model.factor > 1)  # FP16 weights lose updates
    assert texts[0] == texts[1]
