"""Changes of a step are those of its tensors, whatever their strides and whoever shares their memory."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from torch import nn

from halfscope.torch.doctor.find_remedy import program_of
from halfscope.torch.doctor.program import Trial

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


class Shared(nn.Module):
    """Weights of which some are parts of one storage, some turned, and some are assigned anew by the step."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        flat = torch.randn(40)
        self.first, self.second = nn.Parameter(flat[:12].view(3, 4)), nn.Parameter(flat[20:].view(4, 5))
        self.turned = nn.Parameter(torch.randn(5, 6).t())
        self.images = nn.Parameter(torch.randn(2, 3, 4, 4).to(memory_format=torch.channels_last))
        self.assigned = nn.Parameter(torch.randn(3, 2).t() if draw.random() < 0.5 else torch.randn(2, 3))
        self.register_buffer("mean", torch.randn(7)[::2])

    def forward(self) -> torch.Tensor:
        terms = (self.first, self.second, self.turned, self.images, self.assigned, self.mean)
        return sum(term.square().sum() for term in terms)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_changes_are_after_minus_before(name: str, seed: int) -> None:
    draw = random.Random(seed)
    torch.manual_seed(seed)
    model = Shared(draw)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            model.mean.mul_(0.5)
            model.assigned.data = model.assigned.data + 1
        return loss

    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    before = {key: tensor.detach().clone() for key, tensor in named.items()}
    changes = program_of(model, step, "fp16", [optimizer], 1.0).run(Trial(is_exact=True)).outcome.changes
    assert all(torch.equal(tensor.detach(), before[key]) for key, tensor in named.items())
    step()
    assert set(changes) >= set(named)
    for key, tensor in named.items():
        assert torch.equal(changes[key], (tensor.detach() - before[key]).reshape(-1)), key
