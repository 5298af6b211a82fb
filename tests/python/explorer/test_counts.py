"""The slider's numbers: what_if's, of recorded tensors at every scale; bounds for formats of other counts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import halfscope
from halfscope import _core
from node import needs_node, run

RECORDED = Path(__file__).resolve().parents[3] / "experiments" / "recorded"
SCALES = range(-10, 33)
FORMATS = ("fp16", "bf16", "fp8_e4m3", "fp8_e5m2", "fp8_e5m2_ftz", "e3m4")

AT_ALL_SCALES = """
const { data, format } = given;
const own = data.formats.find(({ name }) => name === data.format);
const other = data.formats.find(({ name }) => name === format);
return data.tensors.map(({ cells }) => {
  const counted = explorer.counters(cells);
  const found = [];
  for (let scale = explorer.LOWEST; scale <= explorer.HIGHEST; ++scale) {
    const { nonzero, flushed, subnormal, overflow } = explorer.whatIf(counted, own, other, scale);
    found.push([nonzero, ...flushed, ...subnormal, ...overflow]);
  }
  return found;
});
"""


def in_node(folder: Path, data: _core.ExplorerData, format: str) -> np.ndarray:
    """(tensor, scale, 7): nonzero, and the least and most flushed, subnormal and overflowing."""
    return np.array(run(folder, AT_ALL_SCALES, {"data": json.loads(data.json()), "format": format}))


def counts(histogram: halfscope.Histogram) -> list[list[int]]:
    """The same by `what_if`, each count twice."""
    found = [histogram.what_if(2.0**scale) for scale in SCALES]
    return [[w.nonzero, w.flushed, w.flushed, w.subnormal, w.subnormal, w.overflow, w.overflow] for w in found]


def near_edges(seed: int, format: str) -> np.ndarray:
    """Magnitudes of many binades, a third of them at, or next to, the places where rounding to `format` turns over."""
    noise = np.random.default_rng(seed)
    bits = halfscope._core.describe_format(format)["mantissa_bits"]
    powers = noise.integers(-40, 34, 6000)
    steps = 2.0 - noise.integers(0, 5, 6000) * 2.0 ** -(bits + 1) + noise.choice([-(2.0**-22), 0, 2.0**-22], 6000)
    significands = np.where(noise.random(6000) < 0.3, steps / 2, 1 + noise.random(6000))
    significands[:400] = 1
    return (np.ldexp(significands, powers) * noise.choice([-1, 1], 6000)).astype(np.float32)


@needs_node
def test_recorded_tensors_at_every_scale(tmp_path: Path) -> None:
    """Every fifth record: those between are of the same tensors at other steps."""
    data, expected = _core.ExplorerData("fp16"), []
    for path in sorted(RECORDED.glob("**/histograms.jsonl.gz")):
        for line in gzip.decompress(path.read_bytes()).splitlines()[::5]:
            histogram = halfscope.Histogram.from_record(json.loads(line))
            data.add(f"tensor {len(expected)}", "", 0, histogram)
            expected.append(counts(histogram))
    assert len(expected) > 800
    np.testing.assert_array_equal(in_node(tmp_path, data, "fp16"), expected)


@needs_node
@pytest.mark.parametrize("format", FORMATS)
def test_numbers_at_the_edges_of_their_own_format(tmp_path: Path, format: str) -> None:
    histograms = [halfscope.Histogram(near_edges(seed, format), format=format) for seed in range(4)]
    data = _core.ExplorerData(format)
    for seed, histogram in enumerate(histograms):
        data.add(f"tensor {seed}", "", 0, histogram)
    np.testing.assert_array_equal(in_node(tmp_path, data, format), list(map(counts, histograms)))


@needs_node
@pytest.mark.parametrize("own", ["fp16", "bf16", "fp8_e4m3"])
@pytest.mark.parametrize("other", ["fp16", "bf16", "fp8_e4m3", "fp8_e5m2"])
def test_bounds_of_other_formats_hold_the_truth(tmp_path: Path, own: str, other: str) -> None:
    arrays = [near_edges(seed, format) for seed, format in enumerate((own, other))]
    data = _core.ExplorerData(own)
    for place, array in enumerate(arrays):
        data.add(f"tensor {place}", "", 0, halfscope.Histogram(array, format=own))
    found = in_node(tmp_path, data, other)
    truth = np.array([counts(halfscope.Histogram(array, format=other)) for array in arrays])
    least, most = found[:, :, 1::2], found[:, :, 2::2]
    assert (least <= truth[:, :, 1::2]).all()
    assert (truth[:, :, 2::2] <= most).all()
    np.testing.assert_array_equal(found[:, :, 1], truth[:, :, 1])  # powers of two are counted for every format
    assert (least < most).any() == (other not in (own, "bf16"))  # BF16's edges lie beyond these numbers


@needs_node
def test_steps_and_shifts_add_up(tmp_path: Path) -> None:
    """Gradients recorded at three loss scales are those of the unscaled whole."""
    arrays = [near_edges(seed, "fp16") / 2**12 for seed in range(3)]
    data, whole = _core.ExplorerData(), halfscope.Histogram()
    for step, array in enumerate(arrays):
        whole.update(array)
        data.add("a", "weight_gradient", step, halfscope.Histogram(array * 2.0 ** (3 * step)), -3 * step)
    np.testing.assert_array_equal(in_node(tmp_path, data, "fp16"), [counts(whole)])


@needs_node
@pytest.mark.parametrize(
    ("count", "whole", "words"),
    [(0, 7, "0 %"), (7, 7, "100 %"), (1, 10**6, "< 0.01 %"), (999_999, 10**6, "> 99.9 %"), (1, 200, "0.50 %"),
     (1, 8, "12.5 %"), (0, 0, "0 %")],
)  # fmt: skip
def test_percent(tmp_path: Path, count: int, whole: int, words: str) -> None:
    assert run(tmp_path, "return explorer.percent(...given);", [count, whole]) == words


@needs_node
def test_nothing_recorded(tmp_path: Path) -> None:
    data = _core.ExplorerData()
    data.add("zeros", "", 0, halfscope.Histogram(np.zeros(5, np.float32)))
    assert not in_node(tmp_path, data, "bf16").any()


@needs_node
def test_bars_and_names_of_counts_under_a_format(tmp_path: Path) -> None:
    script = "return [explorer.countsOf(...given), explorer.barsOf(given[1][3]), explorer.barsOf([])];"
    counts, bars, none = run(
        tmp_path, script, [["elements", "zeros", "nonfinite"], [[9, 2, 1], None, None, [120, 3, 123, 4], [], -3]]
    )
    assert counts == {
        "elements": 9, "zeros": 2, "nonfinite": 1, "nonzero": 6, "error": None, "db": None,
        "codes": [120, 3, 123, 4], "exponents": [], "scale": -3,
    }  # fmt: skip
    assert bars == {"first": 120, "all": [3, 0, 0, 4]}
    assert none == {"first": 0, "all": []}
