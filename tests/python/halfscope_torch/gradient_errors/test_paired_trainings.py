"""Trainings of a small Llama beside what `gradient_errors` says of them before they begin, seed by seed.

Rounding toward zero makes errors large enough to be seen in a hundred steps.
"""

from __future__ import annotations

import copy
import re
from contextlib import AbstractContextManager, nullcontext
from statistics import fmean, stdev
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn

from halfscope.torch import GradientError, GradientErrors, emulate, gradient_errors
from recording.source_tree import ROOT
from small_llama import Llama, batches_of, text

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
SEEDS, WARM, STEPS, LAST, BATCH = 4, 40, 100, 20, 4
STUDENT = 3.182  # 97.5 % of the t distribution of three degrees of freedom


def loss_of(model: nn.Module, batch: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


def rounded(product: str, format: str = "mxfp4/toward_zero") -> dict[str, Any]:
    """All layers but the head."""
    return {"layers.*": {"operands": f"{product}={format}"}}


class Start:
    """A model after a few steps in FP32; each arm begins there, and sees the same batches."""

    def __init__(self, letters: Tensor, seed: int) -> None:
        torch.manual_seed(seed)
        self.letters, self.seed = letters, seed
        self.model = Llama(int(letters.max()) + 1, layers=2)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-3)
        self._train(self.model, self.optimizer, self.batches(WARM, 100))

    def batches(self, count: int, about: int) -> list[Tensor]:
        return batches_of(self.letters, count, BATCH, about + self.seed)

    @staticmethod
    def _train(model: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Tensor]) -> list[float]:
        losses = []
        for batch in batches:
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    def errors(self, exceptions: dict[str, Any], **options: Any) -> GradientErrors:
        return gradient_errors(
            self.model, loss_of, self.batches(8, 500), "fp32", exceptions=exceptions, optimizer="adam", **options
        )

    def loss_after(self, exceptions: dict[str, Any] | None) -> float:
        """Mean loss of the last steps; None: untouched."""
        model = copy.deepcopy(self.model)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        optimizer.load_state_dict(copy.deepcopy(self.optimizer.state_dict()))
        context: AbstractContextManager = nullcontext()
        if exceptions is not None:
            context = emulate(
                model, "fp32", optimizer=optimizer, exceptions=exceptions, order="pytorch", compare_steps=[]
            )
        with context:
            return fmean(self._train(model, optimizer, self.batches(STEPS, 900))[-LAST:])


def interval(differences: list[float]) -> tuple[float, float]:
    half = STUDENT * stdev(differences) / len(differences) ** 0.5
    return fmean(differences) - half, fmean(differences) + half


def shown(arm: str) -> list[float]:
    """Numbers of a row of the page: least and largest errors, whole and without the factor, and the loss's change."""
    page = (ROOT / "docs/guides/formats-in-training.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith(f"| {arm} |")]
    return [float(number) for number in re.findall(r"-?\d+\.\d+", row.partition("|")[2].partition("|")[2])]


def test_errors_and_losses_of_paired_trainings() -> None:
    letters = text()
    changes: dict[str, list[float]] = {"all": [], "data gradient": [], "all but those left out": []}
    errors: dict[str, list[GradientError]] = {arm: [] for arm in changes}
    for seed in range(SEEDS):
        start = Start(letters, seed)
        told = start.errors(rounded("*"))
        backward = told.products["data_gradient"]
        assert told.whole.beside_factor > 0.05 and told.products["forward"].beside_factor > 0.5
        assert backward.whole > 0.1 and backward.beside_factor < 0.025  # a shorter gradient, which Adam does not see
        assert told.products["weight_gradient"].beside_factor < 0.01
        assert all(name.startswith("forward@") for name in told.left[:3])
        rest = start.errors(told.exceptions, limit=9).whole
        assert rest.beside_factor <= told.limit
        plain = start.loss_after(None)
        arms = {
            "all": rounded("*"),
            "data gradient": rounded("data_gradient"),
            "all but those left out": told.exceptions,
        }
        for (arm, exceptions), error in zip(arms.items(), (told.whole, backward, rest)):
            changes[arm].append(start.loss_after(exceptions) - plain)
            errors[arm].append(error)
    for arm, each in errors.items():
        whole, beside = [error.whole for error in each], [error.beside_factor for error in each]
        numbers = [min(whole), max(whole), min(beside), max(beside)]
        assert numbers == pytest.approx(shown(arm)[:4], rel=0.3), arm
        assert [fmean(changes[arm]), *interval(changes[arm])] == pytest.approx(shown(arm)[4:], abs=0.01), arm
    assert interval(changes["all"])[0] > 0 and min(changes["all"]) > 0.005
    for arm in ("data gradient", "all but those left out"):
        low, high = interval(changes[arm])
        assert low < 0 < high and fmean(changes[arm]) < 0.6 * fmean(changes["all"])


@pytest.mark.parametrize("seed", range(2))
def test_orders_of_products_and_formats(seed: int) -> None:
    """Forward above the data gradient above the weight gradient; MXFP4 above NVFP4, MXFP8 far below."""
    start = Start(text(), seed)
    names = ("mxfp4", "nvfp4", "mxfp8_e4m3")
    found = {name: start.errors(rounded("*", name), limit=9) for name in names}
    for name in ("mxfp4", "nvfp4"):
        forward, data, weight = (each.beside_factor for each in found[name].products.values())
        assert forward > 1.5 * data and forward > 1.5 * weight
        assert found[name].whole.beside_factor == pytest.approx(forward + data + weight, rel=0.4)
    assert 1.1 < found["mxfp4"].whole.beside_factor / found["nvfp4"].whole.beside_factor < 4
    assert found["mxfp8_e4m3"].whole.beside_factor < found["nvfp4"].whole.beside_factor / 5
    assert not start.errors(rounded("*", "mxfp8_e4m3")).is_seen and start.errors(rounded("*", "mxfp4")).is_seen
