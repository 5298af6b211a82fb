"""Trainings of transformers' Trainer with a callback: bits of the training, numbers in its logs, words on a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from halfscope.torch.trainers import HalfscopeCallback

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
MODES: dict[str, dict[str, Any]] = {
    "fp32": {}, "bf16": {"bf16": True}, "accumulated": {"gradient_accumulation_steps": 2},
    "evaluated": {"eval_strategy": "steps", "eval_steps": 2}, "unclipped": {"max_grad_norm": 0.0},
}  # fmt: skip


class Tokens(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, item: int) -> dict[str, Any]:
        ids = torch.randint(50, (9,), generator=torch.Generator().manual_seed(item))
        return {"input_ids": ids, "labels": ids}


class Squared(nn.Module):
    """In place of a norm: squares that overflow in FP32 too."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        size = x * 1e25
        return x + 0.0 * (size * size)


class Tripped(Exception):
    pass


class Trips(transformers.TrainerCallback):
    """Ends a training with an error in its third step."""

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == 2:
            raise Tripped


def trainer_of(folder: Path, is_faulty: bool = False, **mode: Any) -> Trainer:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=16,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    if is_faulty:
        model.model.layers[1].post_attention_layernorm = Squared()
    arguments = TrainingArguments(
        str(folder), per_device_train_batch_size=4, num_train_epochs=1, logging_steps=2, report_to=[], seed=0,
        disable_tqdm=True, use_cpu=True, save_strategy="no", learning_rate=1e-2, **mode,
    )  # fmt: skip
    return Trainer(model, arguments, train_dataset=Tokens(), eval_dataset=Tokens())


def bits(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


@pytest.mark.parametrize("mode", MODES)
def test_a_healthy_training_stays_as_it_is(mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, watched = (trainer_of(tmp_path, **MODES[mode]) for _ in range(2))
    callback = HalfscopeCallback(every=2)
    watched.add_callback(callback)
    for each in (plain, watched):
        torch.manual_seed(1)  # the order of data is drawn
        capsys.readouterr()
        each.train()
    wanted = bits(plain)
    assert all(torch.equal(tensor, wanted[name]) for name, tensor in bits(watched).items())
    assert callback.report.to_dict()["report"] == "watch"
    assert str(callback.report) in capsys.readouterr().err
    shares = [key for entry in watched.state.log_history for key in entry if key.startswith("halfscope/flushed")]
    assert shares
    losses = [[entry["loss"] for entry in each.state.log_history if "loss" in entry] for each in (plain, watched)]
    assert losses[0] == losses[1]
    assert not (tmp_path / "halfscope-batch.pt").exists()
    assert all(not module._forward_hooks for module in watched.model.modules())


def test_a_trainer_that_is_given_logs_the_watched_steps(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path)
    trainer.add_callback(HalfscopeCallback(every=2, trainer=trainer))
    trainer.train()
    steps = [entry["step"] for entry in trainer.state.log_history if "halfscope/loss scale, log2" in entry]
    assert steps == [1, 2, 4, 6, 8]


@pytest.mark.parametrize("mode", ["fp32", "bf16", "accumulated", "unclipped"])
@pytest.mark.parametrize("is_given", [False, True])
def test_the_first_step_that_is_not_finite_is_checked_before_its_update(
    mode: str, is_given: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = trainer_of(tmp_path / "run", is_faulty=True, **MODES[mode])
    callback = HalfscopeCallback(every=2, trainer=trainer if is_given else None)
    trainer.add_callback(callback)
    trainer.train()
    line = next(
        number for number, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "size * size" in text
    )
    finding = callback.report.to_dict()["findings"][0]
    assert (finding["file"], finding["line"]) == (__file__, line)
    said = capsys.readouterr().err
    assert "step 1 is not finite; its batch is in" in said
    assert str(callback.report) in said
    saved = torch.load(tmp_path / "run" / "halfscope-batch.pt")
    assert saved["step"] == 1
    assert saved["batch"]["input_ids"].shape == (4, 9)


def test_an_error_in_a_training_leaves_the_next_one_watched_once(tmp_path: Path) -> None:
    trainer = trainer_of(tmp_path)
    callback = HalfscopeCallback(every=1)
    trainer.add_callback(callback)
    trainer.add_callback(Trips)
    with pytest.raises(Tripped):
        trainer.train()
    trainer.remove_callback(Trips)
    trainer.train()
    assert callback.report.to_dict()["report"] == "watch"
    assert "8 watched steps" in str(callback.report)
    assert all(not module._forward_hooks for module in trainer.model.modules())


def test_a_batch_that_cannot_be_saved_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    trainer = trainer_of(tmp_path, is_faulty=True)
    trainer.add_callback(HalfscopeCallback(folder=tmp_path / "file" / "below"))
    trainer.train()
    assert "its batch was not saved to" in capsys.readouterr().err


def test_steps_that_are_not_positive_are_refused() -> None:
    with pytest.raises(ValueError, match="every=0; give 1 or more steps"):
        HalfscopeCallback(every=0)
    with pytest.raises(RuntimeError, match="no training has begun"):
        print(HalfscopeCallback().report)
