"""Figures of loss scales: what is drawn is what was recorded or follows from it, and every label is there."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from halfscope import plotting
from halfscope.results import Experiment, read_experiment
from halfscope.results.json_files import read_json
from synthetic import bell, histogram_record, write_json, write_json_lines
from synthetic_scales import (
    DETECTION,
    OBSERVED,
    ScaleArm,
    flushed,
    write_scale_results,
)
from test_plots import bands, bars, overlaps, texts

ROLES = ("activation_gradient", "weight_gradient")


def labelled(axes: Axes, label: str):
    return next(line for line in axes.lines if str(line.get_label()).startswith(label))


def points(axes: Axes, label: str) -> dict[float, float]:
    line = labelled(axes, label)
    return dict(zip(np.asarray(line.get_xdata(), float).tolist(), np.asarray(line.get_ydata(), float).tolist()))


# The histogram times a scale.


def test_both_rows_show_the_counts_and_the_lower_ones_are_shifted(detection: Experiment) -> None:
    figure = plotting.scaled_gradient_histogram(detection, "fp32", "activation_gradient", 3)
    counts = bell(-26, 3)
    total = sum(counts.values()) + 25_000
    for row, shift in ((figure.axes[:3], 0), (figure.axes[3:], 3)):
        heights = bars(row[1])
        for exponent in range(-39, 16):
            expected = 100 * counts.get(exponent - shift, 0) / total
            assert heights[exponent] == pytest.approx(expected), (shift, exponent)
        assert list(bars(row[0]).values()) == pytest.approx([100 * 25_000 / total])
        assert sum(heights.values()) + sum(bars(row[0]).values()) == pytest.approx(100)
        assert bands(row[1]) == [(-40, -25), (-25, -14), (-14, 16), (16, 18)]
    assert figure.axes[1].get_ylim() == figure.axes[4].get_ylim()
    assert figure.axes[1].get_title("left") == "Activation gradients unscaled"
    assert figure.axes[4].get_title("left") == "Activation gradients times the loss scale S = 8"


def test_the_shares_of_the_bands_are_exact_and_of_the_nonzero(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path, seeds=1)
    record = histogram_record(1, "weight_gradient", 1.0, {-26: 10, -25: 10, -16: 10, 14: 20, 15: 40}, zeros=910)
    at = {exponent: exponent - record["first_exponent"] for exponent in (-25, -16, 15)}
    record["pow2"][at[-25]] = 4  # exactly 2^-25: flushed
    record["top"][at[15]] = 30  # round up to 2^16: infinite
    write_json_lines(folder / "fp32/seed0/histograms.jsonl", [record])
    experiment = read_experiment(folder)
    figure = plotting.scaled_gradient_histogram(experiment, "fp32", "weight_gradient", 1)
    shares = [[text.replace(": ", "\n").splitlines()[-1] for text in texts(figure.axes[place])] for place in (1, 4)]
    assert shares == [["15.6 %", "17.8 %", "33.3 %", "33.3 %"], ["0 %", "33.3 %", "22.2 %", "44.4 %"]]
    assert (
        "91.0 % are zero" in figure.get_supxlabel().replace("\n", " ") and "of the non-zero" in figure.get_supxlabel()
    )


# Shares against the scale.


def test_predicted_shares_are_what_the_counts_give(detection: Experiment) -> None:
    figure = plotting.scale_window(detection)
    for axes, centre in zip(figure.axes, (-26, -20)):
        counts = bell(centre, 3)
        total = sum(counts.values())
        shares = {outcome: points(axes, outcome) for outcome in ("flushed to zero", "subnormal", "overflow")}
        assert list(shares["overflow"]) == list(range(-10, 41))
        for scale in range(-10, 41):
            for outcome, (low, high) in {
                "flushed to zero": (-99, -26),
                "subnormal": (-25, -15),
                "overflow": (16, 99),
            }.items():
                expected = sum(count for exponent, count in counts.items() if low <= exponent + scale <= high)
                assert shares[outcome][scale] == pytest.approx(100 * expected / total), (outcome, scale)
    assert [axes.get_title("left") for axes in figure.axes] == ["Activation gradients", "Weight gradients"]


def test_counted_shares_lie_at_the_scales_of_the_static_arms(detection: Experiment) -> None:
    figure = plotting.scale_window(detection)
    for axes, places in zip(figure.axes, ((0, 2), (1, 3))):
        found = points(axes, "flushed to zero, counted")
        assert list(found) == [0, 3, 6, 10]
        for exponent, share in found.items():
            expected = sum(flushed(2.0**exponent, place, step) for place in places for step in OBSERVED)
            assert share == pytest.approx(100 * expected / (2 * len(OBSERVED) * 800))
        assert set(points(axes, "subnormal, counted").values()) == {10.0}
        assert "overflow, counted" not in [line.get_label() for line in axes.lines]  # nothing was: no markers at zero


def test_usable_scales_are_shaded_and_named(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path, seeds=1)
    records = [
        histogram_record(1, "activation_gradient", 1.0, {-31: 5}),
        histogram_record(1, "weight_gradient", 1.0, {4: 5}),
    ]
    write_json_lines(folder / "fp32/seed0/histograms.jsonl", records)
    figure = plotting.scale_window(read_experiment(folder))
    assert [bands(axes) for axes in figure.axes] == [[(6, 11)], [(6, 11)]]
    assert "Shaded: scales 2⁶ to 2¹¹" in figure.get_supxlabel()
    records[1] = histogram_record(1, "weight_gradient", 1.0, {12: 5})
    write_json_lines(folder / "fp32/seed0/histograms.jsonl", records)
    figure = plotting.scale_window(read_experiment(folder))
    assert [bands(axes) for axes in figure.axes] == [[], []]
    assert "No single scale fits all gradients" in figure.get_supxlabel()


def test_the_caption_names_markers_only_where_there_are_some(detection: Experiment, tmp_path: Path) -> None:
    assert "Markers: what the arms counted" in plotting.scale_window(detection).get_supxlabel()
    alone = read_experiment(write_scale_results(tmp_path, DETECTION[:1], seeds=1))
    note = plotting.scale_window(alone).get_supxlabel()
    assert "Lines: predicted" in note and "Markers" not in note


def test_no_fp32_arm_no_prediction(tmp_path: Path) -> None:
    assert plotting.scale_window(read_experiment(write_scale_results(tmp_path, DETECTION[1:], seeds=1))) is None


# The metric against the scale.


def test_metric_by_scale(sweep: Experiment) -> None:
    upper, lower = plotting.scale_curve(sweep).axes
    curve = points(upper, "static scale")
    assert list(curve) == list(range(-4, 25))
    assert all(curve[k] == 79.5 for k in range(-4, 16)) and all(np.isnan(curve[k]) for k in range(16, 25))
    assert list(labelled(upper, "diverged").get_xdata()) == list(range(16, 25))
    assert list(labelled(upper, "fp32").get_ydata()) == [80.0, 80.0]
    assert points(upper, "fp16_dynamic") == {15: 79.0}
    assert points(upper, "fp16_s262144_skip") == {18: 63.0}
    assert upper.get_ylabel() == "test accuracy (%)" and lower.get_xlabel() == "loss scale S"


def test_an_arm_whose_scale_grew_beyond_the_others_is_in_sight(detection: Experiment) -> None:
    upper = plotting.scale_curve(detection).axes[0]
    assert points(upper, "fp16_dynamic") == {20: 0.528} and upper.get_xlim() == (-0.6, 20.6)


def test_shares_by_scale_come_from_the_summary(sweep: Experiment) -> None:
    lower = plotting.scale_curve(sweep).axes[1]
    assert set(points(lower, "flushed to zero").values()) == {25.0}
    assert set(points(lower, "subnormal").values()) == {12.5}
    overflow = points(lower, "overflow")
    assert [k for k, share in overflow.items() if np.isfinite(share)] == list(range(16, 25))
    assert overflow[20] == pytest.approx(0.1) and lower.get_yscale() == "log" and lower.get_ylim()[0] <= 0.1


def test_shares_by_scale_are_counted_where_the_summary_has_none(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path)
    summary = read_json(folder / "summary.json")
    for line in summary["arms"]:
        del line["flushed"], line["subnormal"], line["overflow"]
    write_json(folder / "summary.json", summary)
    found = points(plotting.scale_curve(read_experiment(folder)).axes[1], "flushed to zero")
    expected = sum(flushed(8, place, step) for place in range(4) for step in OBSERVED) / (4 * len(OBSERVED) * 800)
    assert found[3] == pytest.approx(100 * expected)


def test_few_scales_are_no_curve(tmp_path: Path) -> None:
    arms = [arm for arm in DETECTION if arm.name != "fp16_s64"]
    assert plotting.scale_curve(read_experiment(write_scale_results(tmp_path, arms, seeds=1))) is None


def test_a_metric_that_should_be_small_says_so(tmp_path: Path) -> None:
    experiment = read_experiment(write_scale_results(tmp_path, lower_is_better=True))
    assert "lower is better" in plotting.scale_curve(experiment).axes[0].get_ylabel()
    assert "lower is better" in plotting.scoreboard(experiment).axes[0].get_xlabel()
    assert "lower is better" in plotting.metric_curves(experiment).axes[0].get_ylabel()


# All of them.


def figures(experiment: Experiment) -> list[Figure]:
    drawn = [
        plotting.scale_curve(experiment),
        plotting.scale_window(experiment),
        plotting.predicted_and_counted(experiment),
    ]
    drawn += [plotting.flushed_map(experiment, role) for role in ROLES]
    drawn += [plotting.scaled_gradient_histogram(experiment, "fp32", role, 10) for role in ROLES]
    return [figure for figure in drawn if figure]


def ticks(axes: Axes) -> list:
    """The tick labels of the x axis that are drawn: matplotlib also keeps some that lie beyond its ends."""
    low, high = sorted(axes.get_xlim())
    return [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]


def test_no_labels_overlap_or_leave_the_page(detection: Experiment, sweep: Experiment) -> None:
    for figure in (*figures(detection), *figures(sweep)):
        figure.draw_without_rendering()
        labels = [text for axes in figure.axes for text in (*axes.texts, *ticks(axes), axes.xaxis.label)]
        labels += [axes._left_title for axes in figure.axes]
        assert overlaps(labels) == []
        notes = [figure._suptitle, figure._supxlabel]
        for text in [*labels, *(axes.yaxis.label for axes in figure.axes), *(note for note in notes if note)]:
            box = text.get_window_extent()
            assert box.x0 >= 0 and box.x1 <= figure.bbox.width, text.get_text()
            assert box.y0 >= -1 and box.y1 <= figure.bbox.height + 1, text.get_text()


def test_every_figure_can_be_drawn_where_all_arms_diverged(tmp_path: Path) -> None:
    arms = [ScaleArm(arm.name, None, arm.scale) for arm in DETECTION]
    for figure in figures(read_experiment(write_scale_results(tmp_path, arms, seeds=1))):
        figure.draw_without_rendering()


def test_many_moving_scales_have_a_panel_each(tmp_path: Path) -> None:
    folder = write_scale_results(tmp_path, seeds=1)
    summary = read_json(folder / "summary.json")
    moving = next(line for line in summary["arms"] if line["arm"] == "fp16_dynamic")
    for place in range(8):
        shutil.copytree(folder / "fp16_dynamic", folder / f"other_{place}")
        summary["arms"].append(moving | {"arm": f"other_{place}"})
    write_json(folder / "summary.json", summary)
    figure = plotting.moving_scales(read_experiment(folder))
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in shown] == ["fp16_dynamic", *(f"other_{place}" for place in range(8))]
    assert all(len([line for line in axes.lines if line.get_color() == "#d0d0d0"]) == 9 for axes in shown)


def test_notes_stay_within_the_figure(detection: Experiment) -> None:
    figure = plotting.predicted_and_counted(detection)
    figure.get_layout_engine().execute(figure)
    note = next(text for text in figure.findobj(Text) if text.get_text().startswith("12 of 16 counted"))
    assert note.get_window_extent().x1 <= figure.bbox.x1
