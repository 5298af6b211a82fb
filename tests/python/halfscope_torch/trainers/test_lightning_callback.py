"""Trainings of Lightning's Trainer with a callback: bits of the training, numbers in its loggers, words on a fault."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is not installed")
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from halfscope.torch.trainers import LightningCallback

pytestmark = [
    pytest.mark.torch, pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore"),  # Lightning's own, about workers and intervals
]  # fmt: skip
MODES: dict[str, dict[str, Any]] = {
    "fp32": {}, "bf16": {"precision": "bf16-mixed"}, "accumulated": {"accumulate_grad_batches": 2},
    "clipped": {"gradient_clip_val": 0.5},
}  # fmt: skip


class Task(lightning.LightningModule):
    def __init__(self, is_faulty: bool, is_manual: bool = False) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 16), nn.Linear(16, 3)
        self.is_faulty, self.automatic_optimization = is_faulty, not is_manual

    def loss_of(self, batch: Any) -> torch.Tensor:
        x, labels = batch
        h = torch.tanh(self.first(x))
        if self.is_faulty:
            h = h + (h * 1e25).square() * 0.0
        return functional.cross_entropy(self.second(h), labels)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = self.loss_of(batch)
        self.log("loss", loss, on_step=False, on_epoch=True)
        if self.automatic_optimization:
            return {"loss": loss}
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(loss)
        optimizer.step()
        return None

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val_loss", self.loss_of(batch))

    def configure_optimizers(self) -> Any:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def fitted(folder: Path, callback: Any = None, is_faulty: bool = False, is_manual: bool = False, **mode: Any) -> Any:
    """The trainer, after a fit of ten batches."""
    torch.manual_seed(0)
    task = Task(is_faulty, is_manual)
    batches = [(torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(10)]
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=1, enable_progress_bar=False, enable_model_summary=False,
        enable_checkpointing=False, default_root_dir=folder, logger=CSVLogger(folder, "", ""), log_every_n_steps=1,
        callbacks=[callback] if callback is not None else None, val_check_interval=2, **mode,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(task, *(DataLoader(each, batch_size=None) for each in (batches, batches[:1])))
    return trainer


@pytest.mark.parametrize("mode", MODES)
def test_a_healthy_training_stays_as_it_is(mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = fitted(tmp_path / "plain", **MODES[mode])
    callback = LightningCallback(every=2)
    watched = fitted(tmp_path / "watched", callback, **MODES[mode])
    wanted = plain.lightning_module.state_dict()
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in watched.lightning_module.state_dict().items())
    assert callback.report.to_dict()["report"] == "watch"
    assert str(callback.report) in capsys.readouterr().err
    assert "halfscope/flushed without loss scale/weight_gradient" in (tmp_path / "watched/metrics.csv").read_text()
    assert watched.callback_metrics["loss"] == plain.callback_metrics["loss"]
    assert not (tmp_path / "watched/halfscope-batch.pt").exists()


@pytest.mark.parametrize("mode", MODES)
def test_the_first_step_that_is_not_finite_is_checked_before_its_update(
    mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    callback = LightningCallback(every=2)
    trainer = fitted(tmp_path, callback, is_faulty=True, **MODES[mode])
    line = next(number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "1e25" in text)
    finding = callback.report.to_dict()["findings"][0]
    assert (finding["file"], finding["line"]) == (__file__, line)
    assert "step 1 is not finite; its batch is in" in capsys.readouterr().err
    saved = torch.load(tmp_path / "halfscope-batch.pt")
    assert saved["step"] == 1 and saved["batch"][0].shape == (8, 6)
    assert trainer.callback_metrics["loss"].isnan()
    assert "log" not in vars(trainer.lightning_module)  # nothing of the check is left


def test_a_training_step_of_ones_own_steps_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    callback = LightningCallback(every=2)
    fitted(tmp_path / "healthy", callback, is_manual=True)
    assert "watched steps" in str(callback.report)
    fitted(tmp_path / "faulty", callback, is_faulty=True, is_manual=True)
    assert "its loss cannot be computed again" in capsys.readouterr().err


def test_a_training_that_ends_with_an_error_prints_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(self: Task, batch: Any, batch_idx: int) -> Any:
        if batch_idx == 3:
            raise RuntimeError("the task's own")
        return self.loss_of(batch)

    monkeypatch.setattr(Task, "training_step", step)
    callback = LightningCallback(every=1)
    with pytest.raises(RuntimeError, match="own"):
        fitted(tmp_path, callback)
    assert "Over 3 watched steps" in capsys.readouterr().err


def test_steps_that_are_not_positive_are_refused() -> None:
    with pytest.raises(ValueError, match="every=-1; give 1 or more steps"):
        LightningCallback(every=-1)
