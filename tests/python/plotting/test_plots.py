"""Figures: what is drawn is what was recorded, and every label is there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

from halfscope import plotting
from halfscope.results import Experiment, read_experiment
from synthetic import ArmPlan, bell, histogram_record, write_json, write_json_lines, write_results
from synthetic_scales import SWEEP, write_scale_results

SEEDS, OBSERVED = 3, 2  # runs per arm; steps with histograms


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def bars(axes: Axes) -> dict[float, float]:
    """Heights of the bars, or of a staircase's steps, by left edge."""
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            heights, edges, _ = patch.get_data()
            return {float(edge): float(height) for edge, height in zip(edges, heights)}
    rectangles = [patch for container in axes.containers for patch in container.patches]
    return {round(bar.get_x(), 3): bar.get_height() for bar in rectangles}


def bands(axes: Axes) -> list[tuple[float, float]]:
    """Left and right edge of the shaded bands, which are the rectangles that belong to no bar chart."""
    drawn = {id(patch) for container in axes.containers for patch in container.patches}
    found = [patch for patch in axes.patches if isinstance(patch, Rectangle) and id(patch) not in drawn]
    return [(band.get_x(), band.get_x() + band.get_width()) for band in found]


@pytest.mark.parametrize(
    ("role", "centre", "zeros"), [("weight_gradient", -18, 4900), ("activation_gradient", -22, 150_000)]
)
def test_gradient_bars_are_the_counts(experiment: Experiment, role: str, centre: int, zeros: int) -> None:
    figure = plotting.gradient_histogram(experiment, "fp16_mixed", role)
    zero, binades, special = figure.axes
    counts = bell(centre, 4)
    total = sum(counts.values()) + zeros
    heights = bars(binades)
    assert list(heights) == list(range(-40, 17))
    for exponent in range(-39, 16):
        assert heights[exponent] == pytest.approx(100 * counts[exponent] / total), exponent
    below = sum(count for exponent, count in counts.items() if exponent <= -40)
    assert heights[-40] == pytest.approx(100 * below / total)
    assert list(bars(zero).values()) == pytest.approx([100 * zeros / total])
    assert list(bars(special).values()) == [0, 0]
    everything = sum(heights.values()) + sum(bars(zero).values())
    assert everything == pytest.approx(100)


def test_gradient_bands_and_labels(experiment: Experiment) -> None:
    figure = plotting.gradient_histogram(experiment, "fp32")
    binades = figure.axes[1]
    assert bands(binades) == [(-40, -25), (-25, -14), (-14, 16), (16, 18)]
    starts = [text.splitlines()[0] for text in texts(binades)]
    assert starts == ["flushed to zero", "subnormal", "normal", "overflow ≥ 65520"]
    assert "log2" in binades.get_xlabel() and "%" in figure.axes[0].get_ylabel()
    assert "Weight gradients of fp32" in figure.get_suptitle()


def test_gradient_caption_gives_shares_with_and_without_scale(tmp_path: Path) -> None:
    folder = write_results(tmp_path, [ArmPlan("mixed", scale=8.0)], seeds=1, steps=10)
    record = histogram_record(10, "weight_gradient", 8.0, {-27: 10, -20: 30, 0: 40}, zeros=20)
    write_json_lines(folder / "mixed/seed0/histograms.jsonl", [record])
    figure = plotting.gradient_histogram(read_experiment(folder), "mixed")
    assert figure.get_supxlabel().splitlines() == [
        "As FP16, unscaled: 10.0 % flushed to zero, 30.0 % subnormal, 0 % overflow. Exact zeros: 20.0 %.",
        "As FP16, times the loss scale 8: 0 % flushed to zero, 40.0 % subnormal, 0 % overflow.",
    ]


def test_small_gradients_are_counted_below_the_smallest_number_at_each_step(tmp_path: Path) -> None:
    folder = write_results(tmp_path, [ArmPlan("mixed", scale=8.0)], seeds=2, steps=10)
    for seed, below in ((0, 10), (1, 30)):
        records = [
            histogram_record(5, "weight_gradient", 8.0, {-25: below, -24: 20, 0: 40}, zeros=1000),
            histogram_record(10, "weight_gradient", 8.0, {-24: 10}),
            histogram_record(10, "activation_gradient", 8.0, {-30: 10}),
        ]
        write_json_lines(folder / f"mixed/seed{seed}/histograms.jsonl", records)
    figure = plotting.small_gradients(read_experiment(folder))
    assert figure is not None
    (line,) = figure.axes[0].lines
    assert list(line.get_xdata()) == [5, 10]
    assert list(line.get_ydata()) == pytest.approx([100 * 40 / 160, 0])
    assert "below 2⁻²⁴" in figure.axes[0].get_title(loc="left") and "FP16" in figure.axes[0].get_ylabel()
    assert plotting.small_gradients(read_experiment(folder), "activation_gradient") is None


def test_nonfinite_gradients_have_their_own_bars(experiment: Experiment) -> None:
    special = plotting.gradient_histogram(experiment, "fp16_unprotected").axes[2]
    total = OBSERVED * (sum(bell(-18, 4).values()) + 4900) + 30
    assert list(bars(special).values()) == pytest.approx([0, 100 * 30 / total])
    assert [label.get_text() for label in special.get_xticklabels()] == ["inf", "NaN"]


def test_high_zero_bar_is_cut_and_says_so(experiment: Experiment) -> None:
    zero = plotting.gradient_histogram(experiment, "fp32", "activation_gradient").axes[0]
    assert next(iter(bars(zero).values())) > zero.get_ylim()[1]
    assert texts(zero) == ["60.0 %"]


def test_lost_updates(experiment: Experiment) -> None:
    figure = plotting.lost_updates(experiment)
    axes = figure.axes[0]
    assert legend(figure) == list(experiment.runs)
    heights = [set(np.round(line.get_ydata(), 9)) for line in axes.lines]
    assert heights == [{80.0}, {81.0}, {82.0}, {20.0}]
    assert axes.lines[0].get_xdata()[:2].tolist() == [10, 20]
    assert "would be lost without it" in axes.get_title(loc="left")


def test_update_ratio_histogram(experiment: Experiment) -> None:
    figure = plotting.update_ratio_histogram(experiment)
    axes = figure.axes[0]
    assert [line.get_xdata()[0] for line in axes.lines] == [-12, -11]
    assert bands(axes) == [(-40, -12), (-12, -11)]
    assert [text.split(maxsplit=1)[-1] for text in texts(axes)] == ["lost", "may be lost"]
    steps = next(patch for patch in axes.patches if patch.get_label() == "fp32").get_data()
    counts = bell(-14, 3)
    at = int(np.flatnonzero(steps.edges == -14)[0])
    assert steps.values[at] == pytest.approx(100 * counts[-14] / sum(counts.values()))
    assert steps.values.sum() == pytest.approx(100)


def test_scoreboard(experiment: Experiment) -> None:
    axes = plotting.scoreboard(experiment).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels == ["fp32", "fp16_mixed", "fp16_no_master", "fp16_unprotected\n(3 of 3 diverged)"]
    points = [line.get_xdata().tolist() for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())]
    assert points == [[70.7, 71.0, 71.3], [70.5, 70.8, 71.1], [62.7, 63.0, 63.3]]
    whiskers = [line.get_xdata().tolist() for line in axes.lines if line.get_marker() == "|"]
    assert whiskers[0] == [70.25, 71.75]
    assert axes.get_xlabel() == "test accuracy (%)"


def test_an_arm_keeps_its_colour(experiment: Experiment) -> None:
    def of_line(figure: Figure, label: str) -> str:
        return to_hex(next(line for line in figure.axes[0].lines if line.get_label().startswith(label)).get_color())

    ratios = plotting.update_ratio_histogram(experiment).axes[0].patches
    scores = [line for line in plotting.scoreboard(experiment).axes[0].lines if line.get_marker() == "D"]
    for place, arm in enumerate(["fp32", "fp16_mixed", "fp16_no_master"]):
        colours = {
            of_line(plotting.loss_curves(experiment), arm),
            of_line(plotting.lost_updates(experiment), arm),
            to_hex(next(patch for patch in ratios if patch.get_label() == arm).get_edgecolor()),
            to_hex(scores[place].get_color()),
        }
        assert len(colours) == 1, arm


@pytest.mark.parametrize("name", ["loss_curves", "lost_updates", "update_ratio_histogram", "scoreboard"])
def test_every_figure_can_be_drawn_where_all_diverged(tmp_path: Path, name: str) -> None:
    plans = [ArmPlan("a", final=None, diverges_at=1), ArmPlan("b", final=None, diverges_at=2)]
    experiment = read_experiment(write_results(tmp_path, plans, seeds=1, steps=5))
    getattr(plotting, name)(experiment).draw_without_rendering()


def overlaps(labels: list) -> list[tuple[str, str]]:
    """Pairs of labels that lie on top of each other once the figure is laid out."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in labels if text.get_text() and text.get_visible()]
    return [(a, b) for i, (a, one) in enumerate(boxes) for b, two in boxes[i + 1 :] if one.overlaps(two)]


def test_no_labels_overlap(experiment: Experiment) -> None:
    for figure in (
        plotting.gradient_histogram(experiment, "fp32"),
        plotting.update_ratio_histogram(experiment),
        plotting.scoreboard(experiment),
    ):
        figure.draw_without_rendering()
        labels = [text for axes in figure.axes for text in (*axes.texts, *axes.get_xticklabels())]
        assert overlaps(labels) == []


def test_scoreboard_of_many_arms(tmp_path: Path) -> None:
    experiment = read_experiment(write_scale_results(tmp_path, SWEEP, seeds=1, unit="%"))
    figure = plotting.scoreboard(experiment)
    figure.draw_without_rendering()
    labels = figure.axes[0].get_yticklabels()
    assert [label.get_text() for label in labels][19:22] == [
        "fp16_s16384", "fp16_s32768", "fp16_s65536 (1 of 1 diverged)",
    ]  # fmt: skip
    assert overlaps([*labels, *figure.axes[0].texts]) == []
    assert figure.axes[0]._left_title.get_window_extent().x1 <= figure.bbox.width
    assert figure.get_figheight() < 12
    assert "79.50" in texts(figure.axes[0])


def test_scoreboard_writes_as_many_digits_as_the_metric_has(tmp_path: Path) -> None:
    assert texts(plotting.scoreboard(read_experiment(write_scale_results(tmp_path))).axes[0])[:2] == ["0.530", "0.120"]


def test_a_scoreboard_has_axes_for_each_metric(tmp_path: Path) -> None:
    plans = [ArmPlan("detector_fp32", final=0.95), ArmPlan("detector_fp16", final=0.97),
             ArmPlan("language_fp32", final=291.9), ArmPlan("language_fp16", final=None, diverges_at=3)]  # fmt: skip
    folder = write_results(tmp_path, plans, seeds=1, steps=10, name="two-tasks")
    for config in folder.glob("*/seed0/config.json"):
        model = "ssd" if config.parents[1].name.startswith("detector") else "gru_lm"
        write_json(config, json.loads(config.read_text()) | {"model": model})
    summary = json.loads((folder / "summary.json").read_text())
    write_json(folder / "summary.json", summary | {"metric": "AP50 / perplexity", "unit": ""})
    detector, language = plotting.scoreboard(read_experiment(folder)).axes
    assert (detector.get_xlabel(), language.get_xlabel()) == ("AP50", "perplexity")
    assert texts(detector) == ["0.950", "0.970"] and texts(language) == ["291.9"]
    assert [label.get_text() for label in detector.get_yticklabels()] == ["detector_fp32", "detector_fp16"]
