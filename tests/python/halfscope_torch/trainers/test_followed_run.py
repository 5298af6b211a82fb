"""Steps beside a gradient scaler: a loss that is not finite is checked, gradients alone are the scaler's."""

from __future__ import annotations

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
