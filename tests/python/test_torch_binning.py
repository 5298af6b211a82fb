"""The counts that PyTorch operations make on a GPU, made on the CPU: those of the compiled kernels, whatever is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.torch

from halfscope import Histogram, lost_updates, update_ratios  # noqa: E402
from halfscope.torch import binning, counting, watch  # noqa: E402
from planted import ELEMENTS, Planted, Scaler, records, train  # noqa: E402

SIZES = (0, 1, 31, 257 * 259)
WIDTHS = {torch.float16: np.int16, torch.bfloat16: np.int16, torch.float32: np.int32, torch.float64: np.int64}


def any_bits(dtype: torch.dtype, size: int, seed: int = 0) -> torch.Tensor:
    """Infinities, NaNs and subnormal numbers as often as any."""
    limits = np.iinfo(WIDTHS[dtype])
    bits = np.random.default_rng(seed).integers(limits.min, limits.max, size, endpoint=True, dtype=WIDTHS[dtype])
    return torch.from_numpy(bits).view(dtype)


def edges() -> torch.Tensor:
    """Beside every edge of FP16 and float32, of either sign; numbers around 1; float32's subnormals of every binade."""
    marks = np.float32([2.0**-25, 2.0**-24, 2.0**-14, 65504, 65520, 65536, 1, 2.0**-126, 2.0**-149, 3.4028235e38, 0])
    ends = [(1 << 23) * field + fraction for field in (1, 102, 112, 127, 142, 254) for fraction in (0x7FE000, 0x7FF000)]
    bits = np.concatenate([marks.view(np.int32), np.int32(ends), np.int32(2) ** np.arange(24), [0x7F800000, 0x7FC00000]])
    around = (bits[:, None] + np.arange(-2, 3)).reshape(-1).astype(np.int64)
    both = np.concatenate([around, around | 0x80000000]) & 0xFFFFFFFF
    return torch.from_numpy(both.astype(np.uint32).view(np.float32))


def all_halves(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)


def doubles() -> torch.Tensor:
    """At and right beside the edges of FP16, closer than float32 can tell, and out of its range."""
    marks = np.array([2.0**-25, 2.0**-24, 2.0**-14 * (1 - 2.0**-12), 65504, 65520, 1e-300, 5e-324, 1e300, np.inf, np.nan, 0])
    beside = [np.nextafter(marks, limit) for limit in (0, np.inf)]
    return torch.from_numpy(np.concatenate([marks, *beside, -marks]))


KINDS: dict[str, Callable[[], torch.Tensor]] = {
    **{f"{dtype} {size}": lambda dtype=dtype, size=size: any_bits(dtype, size) for dtype in WIDTHS for size in SIZES},
    "edges": edges,
    "all float16": lambda: all_halves(torch.float16),
    "all bfloat16": lambda: all_halves(torch.bfloat16),
    "doubles": doubles,
    "gradients": lambda: torch.from_numpy(np.random.default_rng(1).normal(0, 1e-6, 50_000).astype(np.float32)),
    "transposed": lambda: any_bits(torch.float32, 31 * 57).reshape(31, 57).t(),
    "strided": lambda: any_bits(torch.float16, 31 * 58).reshape(31, 58)[1::3, ::2],
    "reversed": lambda: any_bits(torch.float32, 1000).flip(0)[::7],
    "expanded": lambda: torch.tensor([1.5, -0.0, 1e-40]).expand(5, 3),
    "0-d": lambda: torch.tensor(-2.5),
}


@pytest.fixture(params=[1 << 24, 1000], ids=["whole", "pieces"])
def piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(binning, "_PIECE", request.param)
    return request.param


@pytest.mark.parametrize("kind", KINDS)
def test_histograms(kind: str, piece: int) -> None:
    values = KINDS[kind]()
    found = Histogram.from_bins(binning.histogram_bins(values).numpy())
    assert found == Histogram(values) and found.elements == values.numel()


def pairs() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Weights and updates."""
    for dtype in (torch.float32, torch.float64):
        for size in SIZES:
            yield any_bits(dtype, size, 1), any_bits(dtype, size, 2)
    weights = torch.from_numpy(np.random.default_rng(3).normal(0, 1, 40_000))
    updates = weights * 2.0 ** torch.from_numpy(np.random.default_rng(4).uniform(-20, -5, 40_000))
    updates[::50] = 0
    updates[1::50] = weights[1::50].half().double().abs().log2().floor().exp2() * 2.0**-11  # ties
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        yield weights.to(dtype), updates.to(dtype)
    every = edges()
    yield every.repeat(len(every)), every.repeat_interleave(len(every))


@pytest.mark.parametrize("case", range(13))
def test_updates(case: int, piece: int) -> None:
    weights, updates = list(pairs())[case]
    expected = lost_updates(weights, updates)
    found = counting.update_counters(binning.update_effect(weights, updates).numpy(), weights.numel())
    assert (found.elements, found.nonzero, found.lost) == (expected.elements, expected.nonzero, expected.lost)
    assert found.applied_over_intended == pytest.approx(expected.applied_over_intended, rel=1e-12)
    assert Histogram.from_bins(binning.ratio_bins(weights, updates).numpy()) == update_ratios(weights, updates)


def test_every_pair_of_weights_and_updates_is_tried() -> None:
    assert len(list(pairs())) == 13


def watched_records(folder: Path, watches: counting.Counting, monkeypatch: pytest.MonkeyPatch) -> tuple[list, list, str]:
    monkeypatch.setitem(counting.countings, "cpu", watches)
    model = Planted()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=1.0), Scaler(1024.0, skips={2})
    with watch(model, 2, optimizer=optimizer, scaler=scaler, out=folder) as watched:
        train(model, optimizer, 5, scaler)
    return records(folder, "histograms.jsonl"), records(folder, "metrics.jsonl"), watched.verdict()


def test_a_watched_run_writes_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = watched_records(tmp_path / "host", counting.ON_HOST, monkeypatch)
    found = watched_records(tmp_path / "device", counting.BY_PYTORCH, monkeypatch)
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
    monkeypatch.setitem(counting.countings, "cpu", counting.BY_PYTORCH)
    model = Planted()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    with watch(model, 1, optimizer=optimizer) as watched:
        train(model, optimizer, 3)
    assert copies == [8 * binning.SIZE + 2 * 4] * 3  # two layers: outputs, gradients, weight gradients, ratios
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
