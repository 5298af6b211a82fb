"""Steps beside a gradient scaler: a loss that is not finite is checked, gradients alone are the scaler's."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch.trainers.followed_run import BATCH_FILE, Batch, FollowedRun, Settings

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


@pytest.mark.parametrize(
    ("is_scaled", "is_finite_loss", "is_checked"),
    [(True, False, True), (True, True, False), (False, True, True), (False, False, True)],
)
def test_a_step_is_checked(is_scaled: bool, is_finite_loss: bool, is_checked: bool, tmp_path: Path) -> None:
    """Each step has gradients that are not finite."""
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu") if is_scaled else None
    run = FollowedRun(Settings(1, "fp16", None, 5.0), model, optimizer, scaler, folder=tmp_path, speaks=True)
    x = torch.full((2, 3), 1.0 if is_finite_loss else float("inf"))
    run.see_batch(Batch(x, model(x).mean().detach(), lambda: model(x).mean()))
    for weight in model.parameters():
        weight.grad = torch.full_like(weight, float("nan"))
    run.before_update(1)
    run.end()
    assert (run.checked is not None) is is_checked
    assert (tmp_path / BATCH_FILE).exists() is is_checked


def gradients_drawn(draw: random.Random, spoiled: str) -> list[torch.Tensor]:
    """Gradients of a step, zeros and huge ones among them; spoiled: an element in any of them is not finite."""
    gradients = []
    for _ in range(draw.randrange(1, 9)):
        x = torch.randn(draw.choice([(3,), (40, 7), (0,), (1,), (65, 33)])) * draw.choice([0.0, 1e-20, 1.0, 1e30])
        gradients.append(x.mT if x.dim() == 2 and draw.random() < 0.5 else x)
    whole = [x for x in gradients if x.numel()]
    if spoiled and whole:
        x = draw.choice(whole)
        x[tuple(map(draw.randrange, x.shape))] = float(spoiled)
    return gradients


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("spoiled", ["", "nan", "inf", "-inf"])
@pytest.mark.parametrize("is_clipped", [False, True])
def test_the_first_step_with_gradients_that_are_not_finite(
    seed: int, spoiled: str, is_clipped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch's clipping leaves zeros where the norm is infinite, and NaN of infinities."""
    torch.manual_seed(seed)
    model = nn.ParameterList([nn.Parameter(torch.zeros_like(x)) for x in gradients_drawn(random.Random(seed), spoiled)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    run = FollowedRun(Settings(1, "fp16", None, 5.0), model, optimizer, None, folder=tmp_path, speaks=False)
    for weight, gradient in zip(model, gradients_drawn(random.Random(seed), spoiled)):
        weight.grad = gradient
    expected = all(bool(weight.grad.isfinite().all()) for weight in model)
    if is_clipped:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    run.see_batch(Batch(None, torch.tensor(1.0), None))
    steps: list[int] = []
    monkeypatch.setattr(run, "_examine", lambda _batch, step: steps.append(step))
    run.before_update(7, is_clipped=is_clipped)
    run.end()
    assert steps == ([] if expected else [7])


@pytest.mark.parametrize("is_clipped", [False, True])
@pytest.mark.parametrize(("loss", "is_checked"), [(1.0, False), (float("inf"), True), (float("nan"), True)])
def test_a_loss_that_is_not_finite_beside_gradients_that_are(
    is_clipped: bool, loss: float, is_checked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Linear(3, 2)
    run = FollowedRun(
        Settings(1, "fp16", None, 5.0), model, torch.optim.SGD(model.parameters(), lr=0.1), None,
        folder=tmp_path, speaks=False,
    )  # fmt: skip
    for weight in model.parameters():
        weight.grad = torch.ones_like(weight)
    run.see_batch(Batch(None, torch.tensor(loss), None))
    steps: list[int] = []
    monkeypatch.setattr(run, "_examine", lambda _batch, step: steps.append(step))
    run.before_update(1, is_clipped=is_clipped)
    run.end()
    assert steps == [1] * is_checked
