"""Maps of where effects begin, from findings made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from halfscope import plotting
from halfscope.plotting.maps import LEAST, MOST, series_of
from halfscope.results import Experiment, read_experiment
from synthetic_scales import ScaleArm, write_scale_results


def point(series: str, variant: str, place: float, missed: float | None, **more: object) -> dict:
    harm = None if missed is None else "harm" if missed > 0.06 else "none"
    interval = {"low": missed and missed - 0.01, "high": missed and missed + 0.01}
    return {
        "arm": f"{series}_{variant}_{place:g}",
        "series": series,
        "variant": variant,
        "place": place,
        "seeds": 3,
        "diverged": 0,
        "missed": missed,
        "harm": harm,
        **interval,
        **more,
    }


def onset(series: str, variant: str, predicted: float | None) -> dict:
    return {"series": series, "variant": variant, "predicted": predicted, "harmless": None, "harmful": None}


def with_finding(folder: Path, key: str, **found: object) -> Experiment:
    return read_experiment(write_scale_results(folder, [ScaleArm("fp32", 0.5)], **{key: {"margin": 0.05, **found}}))


RATES = [
    point("cnn_adam", "fp16", 1e-5, 0.5, applied=0.4),
    point("cnn_adam", "fp16", 1e-3, 0.0, applied=1.0),
    point("llama_adam", "fp16", 1e-5, None, applied=0.1),
    point("llama_adam", "fp16", 1e-3, 0.01, applied=0.99, diverged=1),
]


@pytest.fixture
def master(tmp_path: Path) -> Figure:
    experiment = with_finding(
        tmp_path,
        "where_master_copy",
        points=RATES,
        onsets=[onset("cnn_adam", "fp16", 7e-5)],
        applied_where_harm_begins=0.9,
    )
    figure = plotting.where_master_copy(experiment)
    assert figure is not None
    return figure


def test_a_panel_per_network_has_its_points_and_the_predicted_beginning(master: Figure) -> None:
    panels = {axes.get_title(loc="left"): axes for axes in master.axes}
    assert {"cnn, adam", "llama, adam", "By the share that is applied"} <= panels.keys()
    line = panels["cnn, adam"].lines[0]
    assert list(line.get_xdata()) == [1e-5, 1e-3]
    assert list(line.get_ydata()) == [50.0, 0.0]
    dashed = [line for line in panels["cnn, adam"].lines if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in dashed] == [7e-5]


def legend_of(figure: Figure) -> set[str]:
    legends = [axes.get_legend() for axes in figure.axes if axes.get_legend()]
    legends += [legend for part in figure.subfigs for legend in part.legends]
    return {text.get_text() for legend in legends for text in legend.get_texts()}


def test_all_that_is_drawn_is_named(master: Figure) -> None:
    assert {"fp16", "everyday learning rate", "harm: 95 % interval above 5 %", "cnn", "llama"} <= legend_of(master)
    words = {text.get_text() for axes in master.axes for text in axes.texts}
    assert {"DCGAN", "pre-training's end", "predicted from 0.9 on"} <= words


def test_a_diverged_arm_stands_at_the_edge_and_an_unlearned_one_is_left_out(master: Figure) -> None:
    axes = next(axes for axes in master.axes if axes.get_title(loc="left") == "llama, adam")
    assert list(axes.lines[0].get_xdata()) == [1e-3]
    assert list(axes.lines[0].get_ydata()) == [100 * MOST]


def test_points_are_grouped_and_ascend(tmp_path: Path) -> None:
    found = {"points": [*reversed(RATES)], "onsets": []}
    groups = series_of(found)
    assert [(line.series, len(line.points), line.onset) for line in groups] == [
        ("llama_adam", 2, None),
        ("cnn_adam", 2, None),
    ]
    assert all(line.points[0]["place"] < line.points[1]["place"] for line in groups)


def test_a_panel_per_network_has_both_ways_to_so_many_positions(tmp_path: Path) -> None:
    points = [
        point("gru", "fp16", 2048, -2.0, lost_energy=0.001, lost_magnitude=0.04),
        point("gru", "fp16", 32768, 0.3, lost_energy=0.4, lost_magnitude=0.6),
        point("gru_weighted", "fp16", 32768, 0.1, lost_energy=0.5, lost_magnitude=0.7),
        point("ssd", "fp16", 7680, 0.0, lost_energy=None, lost_magnitude=None),
    ]
    onsets = [onset("gru", "fp16", 9000)]
    found = {"points": points, "onsets": onsets, "flushed_where_harm_begins": 0.2}
    experiment = with_finding(tmp_path, "where_loss_scaling", **found)
    figure = plotting.where_loss_scaling(experiment)
    assert figure is not None
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    gru = panels["gru"]
    assert list(gru.lines[0].get_xdata()) == [2048, 32768]
    assert list(gru.lines[0].get_ydata()) == [100 * LEAST, 30.0]
    assert [9000] in [list(dict.fromkeys(line.get_xdata())) for line in gru.lines]
    assert "ssd" in panels and "gru_weighted" not in panels
    lost = [list(line.get_xdata()) for line in panels["By lost energy"].lines[:3]]
    assert lost == [[0.001, 0.4], [0.5], []]
    flushed = [list(line.get_xdata()) for line in panels["By flushed magnitude"].lines[:4]]
    assert flushed == [[0.04, 0.6], [0.7], [], [0.2, 0.2]]
    assert {"a real mean, fp16", "multiplied by a constant, fp16", "gru", "ssd"} <= legend_of(figure)
    assert "predicted from 0.2 on" in {text.get_text() for text in panels["By flushed magnitude"].texts}


def test_errors_of_sums_are_drawn_beside_their_closed_form(tmp_path: Path) -> None:
    row = {"terms": "losses", "model": "fp16_sequential", "overflowed": 0}
    errors = [
        {**row, "count": 64, "error": 1e-4, "expected": 2e-4},
        {**row, "count": 1024, "error": None, "expected": None},
    ]
    figure = plotting.where_fp32_sums(with_finding(tmp_path, "where_fp32_sums", points=[], onsets=[], errors=errors))
    assert figure is not None
    assert {"fp16_sequential", "measured", "overflows", "closed form"} <= legend_of(figure)
    measured, expected, infinite = figure.axes[0].lines
    assert list(measured.get_ydata()) == [1e-4]
    assert list(expected.get_ydata()) == [2e-4]
    assert list(infinite.get_xdata()) == [1024]


def test_harm_of_sums_stands_below_their_errors(tmp_path: Path) -> None:
    points = [point("softmax", "bf16", 256, 0.01), point("softmax", "bf16", 1024, 0.3)]
    errors = [
        {"terms": "losses", "model": "bf16_sequential", "overflowed": 0, "count": 64, "error": 1e-2, "expected": 1e-2}
    ]
    found = {"points": points, "onsets": [onset("softmax", "bf16", 498)], "errors": errors}
    figure = plotting.where_fp32_sums(with_finding(tmp_path, "where_fp32_sums", **found))
    assert figure is not None
    assert {"bf16", "predicted beginning of harm", "harm: 95 % interval above 5 %"} <= legend_of(figure)
    (panel,) = (axes for axes in figure.axes if axes.get_title(loc="left") == "softmax")
    assert list(panel.lines[0].get_ydata()) == [1.0, 30.0]


def test_other_experiments_have_no_map(tmp_path: Path) -> None:
    experiment = read_experiment(write_scale_results(tmp_path, [ScaleArm("fp32", 0.5)]))
    assert plotting.where_master_copy(experiment) is None
    assert plotting.where_loss_scaling(experiment) is None
    assert plotting.where_fp32_sums(experiment) is None
