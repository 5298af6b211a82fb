"""The figures of all-reduces."""

from __future__ import annotations

from pathlib import Path

import pytest

from halfscope import plotting
from halfscope.plotting.drawings import draw
from halfscope.results import Experiment, read_experiment
from halfscope.results.json_files import read_json
from synthetic import write_json
from synthetic_scales import ScaleArm, write_scale_results

ARMS = (ScaleArm("one", 0.5), ScaleArm("eight", 0.4), ScaleArm("fp32", 0.4), ScaleArm("ring", 0.3))
RANKS = {"one": 1, "eight": 8, "fp32": 64, "ring": 64}


def results(folder: Path, ranks: dict[str, int], **summary: object) -> Experiment:
    experiment = write_scale_results(folder, ARMS, **summary)
    for arm, number in ranks.items():
        for path in (experiment / arm).glob("seed*/config.json"):
            settings = {"ranks": number, "all_reduce": "nccl_ring"} if arm == "ring" else {"ranks": number}
            write_json(path, read_json(path) | settings)
    return read_experiment(experiment)


def row(order: str, ranks: int, error: float | None, stagnated: float, division: str = "deepspeed") -> dict:
    return {"gradients": "of one sign", "order": order, "division": division, "ranks": ranks, "relative_error": error,
            "stagnated": stagnated, "flushed": 0, "overflowed": 0}  # fmt: skip


def test_errors_of_means_have_a_line_per_order(tmp_path: Path) -> None:
    rows = [row("nccl_ring", 8, 4e-4, 0), row("nccl_ring", 64, 1e-3, 0.3), row("fp32", 8, 2e-4, 0),
            row("fp32", 64, None, 0), row("fp32", 8, 9.0, 0.9, "ddp")]  # fmt: skip
    figure = plotting.mean_errors(results(tmp_path, {}, all_reduces=rows))
    assert figure is not None
    left, right = figure.axes
    assert [line.get_label() for line in left.lines] == ["nccl_ring", "fp32"]
    assert list(left.lines[0].get_xdata()) == [8, 64]
    assert list(left.lines[0].get_ydata()) == [pytest.approx(4e-4), pytest.approx(1e-3)]
    assert list(right.lines[0].get_ydata()) == [0, pytest.approx(0.3)]
    assert left.lines[1].get_ydata()[0] == pytest.approx(2e-4)  # error of one division


def test_losses_are_of_the_most_ranks(tmp_path: Path) -> None:
    experiment = results(tmp_path, RANKS)
    figure = plotting.losses_on_ranks(experiment)
    assert figure is not None
    (axes,) = figure.axes
    assert "64 ranks" in axes.get_title(loc="left")
    assert [line.get_label() for line in axes.lines if line.get_linewidth() > 1] == ["nccl_ring/fp32", "nccl_ring"]
    assert "losses_on_ranks" in [drawing.name for drawing in draw(experiment)]


def test_losses_at_the_end_are_by_ranks(tmp_path: Path) -> None:
    experiment = results(tmp_path, RANKS)
    for arm, losses in {"one": (2.0, 1.0), "eight": (1.0, None), "fp32": (None, None), "ring": (3.0, 5.0)}.items():
        for path, loss in zip(sorted((experiment.folder / arm).glob("seed*/summary.json")), losses):
            write_json(path, read_json(path) | {"train_loss": loss})
    figure = plotting.losses_by_ranks(read_experiment(experiment.folder))
    assert figure is not None
    (axes,) = figure.axes
    means = {line.get_label(): line for line in axes.lines if line.get_linestyle() != "None"}
    assert list(means) == ["nccl_ring/fp32", "nccl_ring"]
    assert list(means["nccl_ring/fp32"].get_xdata()) == [1, 8, 64]
    assert list(means["nccl_ring/fp32"].get_ydata()) == pytest.approx([1.5, 1, float("nan")], nan_ok=True)
    assert list(means["nccl_ring"].get_ydata()) == [4]
    dots = [list(line.get_ydata()) for line in axes.lines if line.get_linestyle() == "None"]
    assert dots == [[2, 1, 1], [3, 5]]
    for path in (experiment.folder / "ring").glob("seed*/summary.json"):
        write_json(path, read_json(path) | {"train_loss": None})
    figure = plotting.losses_by_ranks(read_experiment(experiment.folder))
    assert figure is not None
    assert len(figure.axes[0].lines) == 2


def test_one_rank_makes_no_figure(tmp_path: Path) -> None:
    experiment = results(tmp_path, dict.fromkeys(RANKS, 1))
    assert plotting.losses_on_ranks(experiment) is None
    assert plotting.losses_by_ranks(experiment) is None
    assert plotting.mean_errors(experiment) is None
