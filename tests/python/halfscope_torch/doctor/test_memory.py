"""Memory of a diagnosis: bytes of tensors that live at once."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn

from halfscope.torch import diagnose
from peak_memory import peak_of, weights_of

pytestmark = pytest.mark.torch
MOST = 3.0  # peaks of the step, weights included


@pytest.mark.parametrize("scale", [1.0, 1e8], ids=["healthy", "overflow"])
@pytest.mark.parametrize(("width", "layers", "rows"), [(256, 6, 64), (64, 8, 4096)])
def test_a_diagnosis_takes_at_most_three_peaks_of_the_step(width: int, layers: int, rows: int, scale: float) -> None:
    """Weights are most of the memory of a small batch, and activations of a large one."""
    torch.manual_seed(width + rows)
    parts = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.Tanh())]
    model, x = nn.Sequential(*parts), torch.randn(rows, width)

    def loss() -> torch.Tensor:
        return torch.log((model(x).square().mean() + 0.5) * scale)

    weights = weights_of(model)
    of_step = weights + peak_of(lambda: loss().backward())
    model.zero_grad()
    reports = []
    of_diagnosis = weights + peak_of(lambda: reports.append(diagnose(model, loss, scale=2.0**10)))
    assert bool(reports[0].findings) is (scale > 1), reports[0]
    assert of_diagnosis <= MOST * of_step, of_diagnosis / of_step


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_step_with_its_update_takes_at_most_four_peaks(name: str, memory_format: torch.memory_format) -> None:
    """Weights and the optimizer's state are all of its memory: the state before, FP32's changes and a run's own."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Conv2d(96, 96, 3, bias=False) for _ in range(3))).to(memory_format=memory_format)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=1e-3)
    x = torch.randn(1, 96, 7, 7)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    step()
    optimizer.zero_grad()
    states = [each for state in optimizer.state.values() for each in state.values()]
    before = weights_of(model) + sum(each.nbytes for each in states)
    of_step = before + peak_of(step)
    optimizer.zero_grad()
    of_diagnosis = before + peak_of(lambda: diagnose(model, step, "autocast", optimizer=optimizer))
    assert of_diagnosis <= 4.0 * of_step, of_diagnosis / of_step
