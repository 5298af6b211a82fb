"""A small Llama trained on Python's own documentation: ranks, sizes and mixtures beside true KLs and another score.

The other score is the sum of squares of g and dY, element by element, with true labels; ModelOpt's AutoQuantize has it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("scipy", reason="SciPy is not installed")
from torch import nn

from halfscope.torch import Sensitivity, sensitivity
from halfscope.torch.sensitivity.mixture_search import Search
from halfscope.torch.sensitivity.mixture_trials import tried
from recording.source_tree import ROOT
from small_llama import Layer, Llama, batches_of, text
from squared_errors import squared_errors

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

Tensor = torch.Tensor
FORMATS = ("mxfp4", "nvfp4", "mxfp6_e2m3", "mxfp8_e4m3", "bf16")
NARROW = FORMATS[:4]
OUTLIERS = (11, 60)


@dataclass(frozen=True)
class Trained:
    """A trained network with batches to calibrate on, to take true KLs on, and to judge mixtures on."""

    model: nn.Module
    calibration: list[Tensor]
    truth: list[Tensor]
    judging: list[Tensor]


def trained(is_planted: bool, steps: int = 400) -> Trained:
    """Trained in float64, so that two machines' sums lead to one network.

    is_planted: an embedding's channel that is large before the training, and outliers behind a norm after it.
    """
    letters = text()
    torch.manual_seed(1)
    model = Llama(int(letters.max()) + 1).double()
    if is_planted:
        with torch.no_grad():
            model.embed.weight[:, 7] = 8.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for batch in batches_of(letters, steps, 16, seed=5):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()).backward()
        optimizer.step()
    model = model.float()
    if is_planted:
        plant(model.layers[1])
    return Trained(model.eval(), *(batches_of(letters, *each) for each in ((4, 32, 11), (4, 32, 12), (6, 32, 13))))


def plant(layer: Layer) -> None:
    with torch.no_grad():
        for channel in OUTLIERS:
            layer.second.weight[channel] *= 64
            for linear in (layer.gate, layer.up):
                linear.weight[:, channel] /= 64


def scored(network: Trained) -> Sensitivity:
    return sensitivity(network.model, network.calibration, FORMATS, groups=[], call=inputs_of)


def inputs_of(model: nn.Module, batch: Tensor) -> Tensor:
    return model(batch[:, :-1])


def true_divergences(found: Sensitivity, batches: list[Tensor]) -> dict[tuple[str, str], float]:
    """KL of each unit alone in each format."""
    keys = [(unit, format) for unit in found.units for format in FORMATS]
    subject = found._subject
    each = tried(subject, [{unit: format} for unit, format in keys], subject.calibration.with_batches(batches))
    return dict(zip(keys, (trial.mean for trial in each)))


def labelled(batch: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    return output.flatten(0, 1), batch[:, 1:].flatten()


def rank_correlation(pairs: list[tuple[float, float]]) -> float:
    ranks = [torch.tensor(each).argsort().argsort().double() for each in zip(*pairs)]
    return float(torch.corrcoef(torch.stack(ranks))[0, 1])


def pairs_of(scores: dict[tuple[str, str], float], truth: dict, format: str) -> list[tuple[float, float]]:
    return [(value, truth[key]) for key, value in scores.items() if key[1] == format]


def mixture_of(found: Sensitivity, nats: Callable[[str, str], float], bits: float) -> dict[str, str]:
    """The integer program's solution with other scores."""
    groups = tuple(unit for unit in found.units if not found._subject.is_scored_only(unit))
    search = Search(found._subject, found.scores, groups)
    mixture = search.choices(nats).solve(bits * search.elements)
    assert mixture is not None
    return mixture


def compared(network: Trained, budgets: tuple[float, ...]) -> dict[str, Any]:
    """Mean rank and median size of both scores, and KLs of mixtures on the judging batches by budget."""
    found = scored(network)
    truth, theirs = true_divergences(found, network.truth), squared_errors(found, labelled)
    ours = {key: score.nats for key, score in found.scores.items()}
    told: dict[str, Any] = {}
    for name, scores in (("ours", ours), ("theirs", theirs)):
        each = [pairs_of(scores, truth, format) for format in NARROW]
        ratios = [math.log2(predicted / true) for pairs in each for predicted, true in pairs]
        told[name] = sum(map(rank_correlation, each)) / len(each), median(ratios), min(ratios), max(ratios)
    subject = found._subject
    judging = subject.calibration.with_batches(network.judging)
    groups = [unit for unit in found.units if not subject.is_scored_only(unit)]
    for bits in budgets:
        mixtures = {
            "chosen": found.choose(bits=bits).groups,
            "theirs": mixture_of(found, lambda *key: theirs[key], bits),
            "singles": mixture_of(found, lambda *key: truth[key], bits),
            "nvfp4": dict.fromkeys(groups, "nvfp4"),
        }
        told[f"{bits:g}"] = dict(
            zip(mixtures, (each.mean for each in tried(subject, list(mixtures.values()), judging)))
        )
    return told


def shown(network: str) -> list[list[float]]:
    """Numbers of the page's rows on a network: this score's, the other one's, those of a uniform format."""
    page = (ROOT / "docs/start/which-format-for-which-layer.md").read_text()
    rows = [row.split("|")[3:] for row in page.splitlines() if row.startswith(f"| {network} |")]
    return [[float(number) for number in re.findall(r"-?\d+\.\d+", " ".join(row))] for row in rows]


@pytest.mark.parametrize("is_planted", [False, True])
def test_a_llama(is_planted: bool) -> None:
    told = compared(trained(is_planted), (4.5, 5.0))
    found = [[*told[name], told["4.5"][mixture], told["5"][mixture]]
             for name, mixture in (("ours", "chosen"), ("theirs", "theirs"))]  # fmt: skip
    *scores, uniform = shown("with outliers" if is_planted else "as trained")
    for row, numbers in zip([*found, [told["4.5"]["nvfp4"], told["5"]["nvfp4"]]], [*scores, uniform]):
        assert row[:-2] == pytest.approx(numbers[:-2], abs=0.3) and row[-2:] == pytest.approx(numbers[-2:], rel=0.15)
    rank, size, least, most = told["ours"]
    assert rank > 0.95 and abs(size) < 0.3 and least > -2.5 and most < 2
    assert rank >= told["theirs"][0] - 0.01 and abs(size) < abs(told["theirs"][1])
    for bits in ("4.5", "5"):
        assert told[bits]["chosen"] < told[bits]["nvfp4"]
        assert told[bits]["chosen"] < 1.1 * min(told[bits]["theirs"], told[bits]["singles"])
