"""halfscope.analyze, advise_scale and Histogram.window: windows beside casts made with NumPy, frames and figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.patches import StepPatch

import halfscope
import halfscope.advice
from halfscope import plotting
from halfscope.plotting.style import power

TENSORS = {
    "wide": np.float32([2.0**-30, 2.0**-20, 1.0]),
    "small": np.random.default_rng(1).normal(0, 1e-6, 4000).astype(np.float32),
    "zeros": np.zeros(3, np.float32),
}


def fits(values: np.ndarray, log2_scale: int, tolerance: float) -> bool:
    """Whether a cast of the scaled values to float16 flushes at most that share of their sum of magnitudes, without
    overflow."""
    scaled = np.abs(values.astype(np.float64)) * 2.0**log2_scale
    with np.errstate(over="ignore"):
        halves = scaled.astype(np.float16)
    return scaled[halves == 0].sum() / scaled.sum() <= tolerance and not np.isinf(halves).any()


@pytest.mark.parametrize("tolerance", [0.01, 0.2, 0.4])
@pytest.mark.parametrize("name", ["wide", "small"])
def test_window(name: str, tolerance: float) -> None:
    values = TENSORS[name]
    usable = [k for k in range(-60, 80) if fits(values, k, tolerance)]
    assert halfscope.Histogram(values).window(tolerance) == (usable[0], usable[-1])


def test_no_window() -> None:
    assert halfscope.Histogram(np.float32([2.0**-60, 1.0])).window(0) is None
    assert halfscope.Histogram(TENSORS["zeros"]).window() is None
    assert halfscope.Histogram().window() is None


def test_window_of_another_format() -> None:
    assert halfscope.Histogram(np.float32([1.0]), format="fp8_e4m3").window() == (-9, 8)  # 2^-9 to 448


def test_advice_of_histograms_is_that_of_the_arrays() -> None:
    analysis = halfscope.analyze(TENSORS)
    parts = {name: halfscope.Histogram(values[:2]) for name, values in TENSORS.items()}
    for name, histogram in parts.items():
        histogram.update(TENSORS[name][2:])
    for given in (parts, TENSORS):
        advice = halfscope.advise_scale(given)
        assert (advice.verdict, advice.joint_window_log2) == (analysis.verdict, analysis.joint_window_log2)
        assert advice.recommended_scale_log2 == analysis.recommended_scale_log2
    low, high = analysis.joint_window_log2
    asking = ("wide", "small")
    assert all(fits(TENSORS[name], k, 0.2) for name in asking for k in (low, high))
    assert not all(fits(TENSORS[name], low - 1, 0.2) for name in asking)
    assert not all(fits(TENSORS[name], high + 1, 0.2) for name in asking)
    assert (analysis.enough_from_log2, analysis.overflow_beyond_log2) == (low, high)
    assert analysis.first_hurt == ("small",)
    assert analysis.recommended_scale == 2.0**analysis.recommended_scale_log2 == 2.0 ** min(high - 3, 24)


def test_the_step_that_asks_for_the_largest_scale_counts() -> None:
    early, late = (halfscope.Histogram(np.full(5, 2.0**exponent, np.float32)) for exponent in (-4, -12))
    advice = halfscope.advise_scale({"x": [early, late]})
    assert advice.joint_window_log2 == (-12, 19)
    assert halfscope.advise_scale({"x": late}).joint_window_log2 == (-12, 27)
    with pytest.raises(ValueError, match="'x' is a histogram for bf16"):
        halfscope.advise_scale({"x": [early, halfscope.Histogram(format="bf16")]})


def test_the_verdict_says_how_often_its_rule_was_right() -> None:
    summary = Path(__file__).resolve().parents[2] / "experiments/recorded/cpu/advice-validity/summary.json"
    evidence = json.loads(summary.read_text())["harm"]
    assert evidence["tolerance"] == halfscope.advice.TOLERANCE
    words = f"Sure: such a scale was right in {len(evidence['advice'])} of {len(evidence['advice'])} tasks in FP16"
    assert words in halfscope.advise_scale(TENSORS).verdict
    assert words not in halfscope.advise_scale(TENSORS, tolerance=0.1).verdict
    assert words not in halfscope.advise_scale(TENSORS, format="fp8_e5m2").verdict


def test_no_single_scale() -> None:
    apart = {"low": np.full(9, 2.0**-60, np.float32), "high": np.full(9, 2.0**10, np.float32)}
    advice = halfscope.advise_scale(apart)
    assert advice.joint_window_log2 is None and advice.enough_from_log2 is None
    assert advice.recommended_scale_log2 == 4  # 2^-60 fits from 2^36 on, 2^10 up to 2^5: half of that overflows nothing
    assert "no single scale fits" in advice.verdict and advice.verdict.splitlines()[0] in repr(advice)
    (outlier,) = advice.outliers
    assert (outlier.name, outlier.remedy) in {("low", "own_scale"), ("high", "own_scale")}
    assert advice.to_pandas()["remedy"][outlier.name] == "own_scale"


def test_frames() -> None:
    frame = halfscope.analyze(TENSORS).to_pandas()
    assert list(frame.index) == list(TENSORS) and frame.index.name == "tensor"
    assert frame["elements"].to_dict() == {name: values.size for name, values in TENSORS.items()}
    assert frame["flushed"]["wide"] == 1 and frame["zeros"]["zeros"] == 3
    low, high = halfscope.Histogram(TENSORS["small"]).window()
    assert (frame["low"]["small"], frame["high"]["small"]) == (low, high)
    assert frame["low"].isna().to_dict() == {"wide": False, "small": False, "zeros": True}
    assert len(halfscope.analyze({}).to_pandas()) == 0 == len(halfscope.advise_scale({}).to_pandas())


def test_figures() -> None:
    analysis = halfscope.analyze(TENSORS)
    axes = analysis.plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["wide", "small"]
    low, high = analysis.joint_window_log2
    labels = axes.get_legend_handles_labels()[1]
    assert f"fits all: {power(low)} to {power(high)}" in labels
    assert f"recommended: {power(analysis.recommended_scale_log2)}" in labels
    many = {f"layer{i}": TENSORS["small"] for i in range(60)}
    figure = halfscope.advise_scale(many).plot()
    assert len(figure.axes[0].get_yticks()) == 40 and "20 tensors" in figure.get_supxlabel()
    named = halfscope.advise_scale({f"encoder.layers.{i}.attention.projection.weight": np.float32([1]) for i in "ab"})
    figure = named.plot()
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert max(map(len, labels)) == 32 and len(set(labels)) == 2
    note = halfscope.advise_scale(many).plot()._supxlabel
    note.figure.draw_without_rendering()
    assert note.get_window_extent().x1 <= note.figure.bbox.width  # was cut off
    impossible = halfscope.advise_scale({"x": np.float32([2.0**-60, 1.0])}, tolerance=0).plot()
    assert {"overflows above", "underflows below"} <= set(impossible.axes[0].get_legend_handles_labels()[1])
    assert halfscope.advise_scale({}).plot().axes


def test_a_figure_of_many_tensors_shows_those_that_limit_the_scale() -> None:
    tensors = {f"plain{place}": np.float32([2.0**-20, 2.0**-2]) for place in range(60)}
    tensors |= {"large": np.float32([2.0**-20, 2.0**6] * 9), "small (output)": np.float32([2.0**-27])}
    figure = halfscope.advise_scale(tensors).plot()
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) == 40 and {"large", "small (output)"} <= set(names)
    assert "(output): gradient of a layer's output; the others are those of weights." in figure.get_supxlabel()
    assert "22 tensors that limit the scale less are not shown." in figure.get_supxlabel()


def test_figure_of_a_histogram() -> None:
    histogram = halfscope.Histogram(np.float32([0, 2.0**-30, 2.0**-20, 1.0]))
    figure = plotting.value_histogram(histogram, "Values")
    assert "25.0 % flushed to zero, 25.0 % subnormal" in figure.get_supxlabel()
    (bars,) = (patch for patch in figure.axes[1].patches if isinstance(patch, StepPatch))
    assert max(bars.get_data().values) == 25
    for format, labels in {
        "bf16": ["normal"],
        "fp8_e4m3": [
            "flushed to zero\n≤ 2⁻¹⁰",
            "subnormal\n2⁻⁹ to 2⁻⁷",
            "normal",
            "overflow > 464",
        ],
        "fp8_e5m2": ["subnormal: 2⁻¹⁶ to 2⁻¹⁵", "overflow ≥ 61440"],
    }.items():
        figure = plotting.value_histogram(halfscope.Histogram(np.float32([2.0**-12, 1.0]), format=format))
        assert set(labels) <= {text.get_text() for text in figure.axes[1].texts}
        assert f"As {format.upper().replace('_', ' ')}, unscaled" in figure.get_supxlabel()


def test_scaled_histogram() -> None:
    values = np.float32([2.0**-30, -3.5, 0.0, 70000.0, np.inf])
    histogram = halfscope.Histogram(values)
    assert histogram.scaled(2.0**-7) == halfscope.Histogram(values * np.float32(2.0**-7))
    tiny = histogram.scaled(2.0**-140)
    assert (tiny.elements, tiny.nonzero) == (5, 3) and tiny.to_pandas()["counts"][-149] == 1


def test_records() -> None:
    values = np.random.default_rng(2).normal(0, 1e-7, 1000).astype(np.float32)
    values[:3] = 0, -0.0, np.nan
    histogram = halfscope.Histogram(values)
    record = histogram.record()
    assert halfscope.Histogram.from_record(record) == histogram
    del record["max_abs"]
    assert halfscope.Histogram.from_record(record).what_if(1024) == histogram.what_if(1024)
    assert halfscope.Histogram.from_record(halfscope.Histogram().record()) == halfscope.Histogram()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pow2": None}, "pow2 = null; expected a list of integers"),
        ({"counts": [1, 2]}, "pow2 has 1 binades, counts has 2"),
        ({"pow2": [5]}, "pow2: 5 of 1"),
        ({"first_exponent": 128}, "binades outside -149 to 127"),
        ({"nans": -1}, "nans = -1 is negative"),
        ({"zeros": "many"}, 'zeros = "many"; expected an integer'),
    ],
)
def test_records_that_are_none(change: dict, message: str) -> None:
    record = halfscope.Histogram(np.float32([1.0])).record() | change
    with pytest.raises(ValueError, match=message):
        halfscope.Histogram.from_record(record)
    for nothing in ({}, 3, None):
        with pytest.raises(ValueError, match="it lacks 'counts'"):
            halfscope.Histogram.from_record(nothing)


def test_without_pandas_and_matplotlib() -> None:
    """Counting needs neither; a data frame says what is missing."""
    code = (
        "import sys; sys.modules['pandas'] = sys.modules['matplotlib'] = None\n"
        "import numpy, halfscope\n"
        "found = halfscope.analyze({'x': numpy.ones(3, 'f4')})\n"
        "print(found.recommended_scale_log2, halfscope.replay([{'step': 1, 'scale': 1, 'gradients': {'finite': True, "
        "'max_abs': 1}}], 'dynamic').to_dict()['steps'])\n"
        "for call in (found.to_pandas, halfscope.Histogram().to_pandas, halfscope.list_scalers):\n"
        "    try: call()\n"
        "    except ImportError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["12 1", *["halfscope: data frames need pandas: pip install pandas"] * 3]
