"""Counts by PyTorch operations, as on a GPU but made on the CPU: the same as those of the compiled kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from halfscope import Histogram, lost_updates, update_ratios
from halfscope.torch import watch
from halfscope.torch.device import pytorch_bins, waiting
from planted import ELEMENTS, Planted, Scaler, records, train
from torch_bits import KINDS, PAIRS, pairs


@pytest.fixture(params=[1 << 24, 1000], ids=["whole", "pieces"])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(pytorch_bins, "_PIECE", request.param)
    return request.param


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format", ["fp16", "fp8_e4m3", "e8m22"])
def test_histograms(kind: str, format: str, piece: int) -> None:
    values = KINDS[kind]()
    found = Histogram.from_bins(pytorch_bins.histogram_bins(values, format).numpy(), format=format)
    assert found == Histogram(values, format=format) and found.elements == values.numel()


@pytest.mark.parametrize("case", range(PAIRS))
@pytest.mark.parametrize("format", pytorch_bins.ROUNDED)
def test_updates(case: int, format: str, piece: int) -> None:
    weights, updates = list(pairs())[case]
    expected = lost_updates(weights, updates, format)
    found = waiting.update_counters(pytorch_bins.update_effect(weights, updates, format).numpy(), weights.numel())
    assert (found.elements, found.nonzero, found.lost) == (expected.elements, expected.nonzero, expected.lost)
    assert found.applied_over_intended == pytest.approx(expected.applied_over_intended, rel=1e-12)
    ratios = Histogram.from_bins(pytorch_bins.ratio_bins(weights, updates, format).numpy(), format=format)
    assert ratios == update_ratios(weights, updates, format=format)


def test_every_pair_of_weights_and_updates_is_tried() -> None:
    assert len(list(pairs())) == PAIRS


def watched_records(folder: Path, watches: waiting.Counting, monkeypatch: pytest.MonkeyPatch) -> tuple[list, list, str]:
    monkeypatch.setitem(waiting.countings, "cpu", watches)
    model = Planted()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=1.0), Scaler(1024.0, skips={2})
    with watch(model, 2, optimizer=optimizer, scaler=scaler, out=folder) as watched:
        train(model, optimizer, 5, scaler)
    return records(folder, "histograms.jsonl"), records(folder, "metrics.jsonl"), watched.verdict


def test_a_watched_run_writes_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = watched_records(tmp_path / "host", waiting.ON_HOST, monkeypatch)
    found = watched_records(tmp_path / "device", waiting.BY_PYTORCH, monkeypatch)
    assert [line["step"] for line in expected[0]].count(4) == 8

    def in_order(lines: list[dict]) -> list[dict]:
        return sorted(lines, key=lambda line: (line.get("step", 0), line["tensor"], line.get("role", "")))

    assert in_order(found[0]) == in_order(expected[0]) and found[2] == expected[2]
    for step, other in zip(found[1], expected[1], strict=True):
        for lines in ("tensors", "updates"):
            assert in_order(step.pop(lines, [])) == in_order(other.pop(lines, []))
        assert step == other


def test_bins_come_over_in_one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    copies = []
    monkeypatch.setattr(torch.Tensor, "cpu", lambda tensor: copies.append(tensor.numel()) or tensor)
    monkeypatch.setitem(waiting.countings, "cpu", waiting.BY_PYTORCH)
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        train(model, optimizer, 3)
    assert copies == [8 * pytorch_bins.SIZE + 2 * 4] * 3  # two layers: outputs, gradients, weight gradients, ratios
    assert watched.histograms("weight_gradient")["second.weight"].elements == 3 * ELEMENTS


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (np.zeros(7, np.int64), "7 numbers; 1118 are expected"),
        (np.full(1118, -1), "a count is negative"),
        (np.full(1118, 0x7F800000), "max_abs is not finite"),
    ],
)
def test_what_are_no_bins(bins: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Histogram.from_bins(bins)
