"""Losses of small models under emulation beside PyTorch's own FP16 autocast and BF16 weights."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from halfscope.torch import emulate
from small_models import MODELS, NEED_TRANSFORMERS

pytestmark = pytest.mark.torch
STEPS = 3
AS_PYTORCH = {"compare_steps": (), "attention": "tiled"}  # PyTorch's fused attention rounds the probabilities


class Training:
    """A few steps of a model, with a scaler under FP16."""

    def __init__(self, name: str, weights: torch.dtype, scaled: bool) -> None:
        if name in NEED_TRANSFORMERS:
            pytest.importorskip("transformers", reason="transformers is not installed")
        torch.manual_seed(0)
        self.model, self.loss = MODELS[name]()
        self.model.train().to(weights)
        # Gradients of keys' biases are round-off around 0, of which an eps of 1e-8 makes steps of the learning rate.
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, eps=1e-4)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled)
        self.losses: list[float] = []

    def run(self, autocast: bool = False) -> list[float]:
        for _ in range(STEPS):
            self.optimizer.zero_grad()
            with torch.autocast("cpu", torch.float16, enabled=autocast):
                loss = self.loss()
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.losses.append(loss.item())
        assert not self.scaler.is_enabled() or self.scaler.get_scale() == 1024  # no step was skipped
        return self.losses


@pytest.mark.parametrize("policy", ["autocast_cuda", "fp16_mixed"])
@pytest.mark.parametrize("name", MODELS)
def test_fp16_trains_as_autocast_does(name: str, policy: str) -> None:
    real = Training(name, torch.float32, scaled=True).run(autocast=True)
    training = Training(name, torch.float32, scaled=True)
    options = {"optimizer": training.optimizer, "scaler": training.scaler, **AS_PYTORCH}
    with emulate(training.model, policy, **options) as emulated:
        losses = training.run()
    assert losses == pytest.approx(real, rel=1e-4)
    assert emulated.first_overflow is None
    assert emulated.counts()["skipped"] == 0


@pytest.mark.parametrize("name", MODELS)
def test_bf16_weights_train_as_pytorchs_own(name: str) -> None:
    real = Training(name, torch.bfloat16, scaled=False).run()
    training = Training(name, torch.bfloat16, scaled=False)
    with emulate(training.model, "fp32", optimizer=training.optimizer, **AS_PYTORCH):
        losses = training.run()
    assert losses == pytest.approx(real, rel=5e-4)


@pytest.mark.parametrize("name", MODELS)
def test_bf16_activations_begin_as_pytorchs_own(name: str) -> None:
    """The first loss, before weights of another format have moved."""
    real = Training(name, torch.bfloat16, scaled=False).run()
    training = Training(name, torch.float32, scaled=False)
    with emulate(training.model, "bf16", optimizer=training.optimizer, **AS_PYTORCH):
        losses = training.run()
    assert losses[0] == pytest.approx(real[0], rel=3e-4)
