"""Embeddings with sparse gradients, emulated: numbers and counts are those of dense gradients."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch", minversion="2.4")

from torch import nn

from halfscope.torch import emulate, probe_scales

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Words(nn.Module):
    """Rows of a table, used once or twice, and a layer."""

    def __init__(self, sparse: bool, twice: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.layer, self.twice = nn.Embedding(40, 8, sparse=sparse), nn.Linear(8, 3), twice

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        rows = self.table(words)
        return self.layer(torch.tanh(rows) * self.table(words) if self.twice else torch.tanh(rows))


def trained(sparse: bool, twice: bool, policy: str, compare: tuple[int, ...]) -> tuple[dict, dict]:
    """Weights after three steps on rows of which none comes again in a step, and casts of the weight gradients."""
    model = Words(sparse, twice)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    with emulate(model, policy, optimizer=optimizer, compare_steps=compare) as emulated:
        for step in range(3):
            words = torch.tensor(random.Random(step).sample(range(40), 12)).reshape(3, 4)
            optimizer.zero_grad()
            (model(words).square().mean() * 1e-3).backward()
            optimizer.step()
    casts = emulated.casts()["weight_gradient", "table.weight"] if "pure" in policy or policy == "fp16" else None
    counts = {} if casts is None else {"nonzero": casts.nonzero, "flushed": casts.flushed}
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}, counts


@pytest.mark.parametrize("compare", [(), (1, 2, 3)])
@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("policy", ["fp16", "fp16_mixed", "bf16", "autocast_cuda", "fp16_pure"])
def test_weights_and_counts_are_those_of_dense_gradients(policy: str, twice: bool, compare: tuple[int, ...]) -> None:
    dense, of_dense = trained(False, twice, policy, compare)
    sparse, of_sparse = trained(True, twice, policy, compare)
    assert all(torch.equal(dense[name], sparse[name]) for name in dense)
    assert of_dense == of_sparse


@pytest.mark.parametrize("policy", ["fp16_mixed", "bf16"])
@pytest.mark.parametrize("twice", [False, True])
def test_scales_are_probed_as_with_dense_gradients(policy: str, twice: bool) -> None:
    found = []
    words = torch.arange(12).reshape(3, 4)
    for sparse in (False, True):
        model = Words(sparse, twice)
        found.append(probe_scales(model, lambda model=model: model(words).square().mean() * 1e-4, policy=policy))
    assert str(found[0]) == str(found[1])
