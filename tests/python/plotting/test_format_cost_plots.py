"""Figures of a sensitivity: the heat map of units by formats, and mixtures beside uniform formats."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pandas as pd
import pytest

from halfscope import plotting
from halfscope.plotting.svg import svg_of

COLUMNS = ["nats", "low", "high"]


@dataclass
class Scored:
    """Scores of a sensitivity, with numbers made by hand."""

    nats: dict[tuple[str, str], float]
    formats: tuple[str, ...] = ("mxfp4", "mxfp8_e4m3")
    units: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.units = tuple(dict.fromkeys(unit for unit, _ in self.nats))

    def to_pandas(self) -> pd.DataFrame:
        index = pd.MultiIndex.from_tuples(list(self.nats), names=["unit", "format"])
        return pd.DataFrame({"nats": list(self.nats.values())}, index=index)


@dataclass
class Tried:
    rows: dict[str, tuple[float, float]]

    def to_pandas(self) -> pd.DataFrame:
        numbers = [(name, bits, nats, nats / 2, 2 * nats) for name, (bits, nats) in self.rows.items()]
        return pd.DataFrame(numbers, columns=["format", "bits", *COLUMNS]).set_index("format")


def test_the_most_sensitive_unit_is_the_first_row_and_a_missing_score_is_grey() -> None:
    nats = {("a", "mxfp4"): 1e-3, ("a", "mxfp8_e4m3"): 1e-9, ("b", "mxfp4"): 0.1, ("b", "mxfp8_e4m3"): 1e-4,
            ("", "mxfp8_e4m3"): 1e-5}  # fmt: skip
    figure = plotting.cost_map(Scored(nats))
    axes = figure.axes[0]
    assert [each.get_text() for each in axes.get_yticklabels()] == ["b", "a", "the model"]
    assert [each.get_text() for each in axes.get_xticklabels()] == ["mxfp4", "mxfp8_e4m3"]
    assert [each.get_text() for each in axes.texts] == ["1.0e-01", "1.0e-04", "1.0e-03", "1.0e-09", "1.0e-05"]
    assert axes.collections[0].get_array().mask.sum() == 1
    assert figure.get_supxlabel() == "Grey: a tensor is not finite in the format."
    assert svg_of(figure) == svg_of(plotting.cost_map(Scored(nats)))


def test_a_unit_that_is_finite_in_no_format_stands_first() -> None:
    found = Scored({("a", "mxfp4"): 1e-3})
    found.units = ("a", "b")
    labels = plotting.cost_map(found).axes[0].get_yticklabels()
    assert [each.get_text() for each in labels] == ["b", "a"]


def test_many_units_have_a_row_each_and_some_names() -> None:
    axes = plotting.cost_map(Scored({(f"u{place}", "mxfp4"): 2.0**-place for place in range(100)})).axes[0]
    assert not list(axes.texts) and len(axes.get_yticklabels()) == 34
    assert axes.get_ylim() == (99.5, -0.5)


def test_mixtures_are_one_line_beside_the_uniform_formats() -> None:
    uniform = {"nvfp4": (4.5, 0.1), "mxfp8_e4m3": (8.25, 0.001)}
    figure = plotting.frontier(
        [Tried({**uniform, "mixture": (6.0, 0.003)}), Tried({**uniform, "mixture": (5.0, 0.02)})]
    )
    axes = figure.axes[0]
    mixed, points = (container.lines[0] for container in axes.containers)
    assert list(mixed.get_xdata()) == [5.0, 6.0] and list(mixed.get_ydata()) == [0.02, 0.003]
    assert list(points.get_xdata()) == [4.5, 8.25] and points.get_linestyle() == "None"
    assert [each.get_text() for each in axes.texts] == ["nvfp4", "mxfp8_e4m3"] and axes.get_yscale() == "log"


def test_an_unknown_interval_has_no_whisker() -> None:
    tried = Tried({"nvfp4": (4.5, 0.1), "mixture": (5.0, 0.02)})
    table = tried.to_pandas().assign(low=math.nan, high=math.nan)
    tried.to_pandas = lambda: table  # type: ignore[method-assign]
    assert svg_of(plotting.frontier([tried]))


def test_nothing_to_draw_is_refused() -> None:
    with pytest.raises(ValueError, match="cost_map: no format changes a unit's result"):
        plotting.cost_map(Scored({("a", "mxfp4"): 0.0}))
    with pytest.raises(ValueError, match="frontier: no mixture; give those of"):
        plotting.frontier([])


@dataclass
class Left:
    layers: tuple[str, ...]
    error: float


@dataclass
class Errors:
    layers: list[Left]
    limit: float = 0.02

    @staticmethod
    def seen(error: float) -> float:
        return error


def test_errors_by_layers_that_are_left_out() -> None:
    found = Errors([Left((), 0.3), Left(("a",), 0.1), Left(("a", "b"), 0.001), Left(("a", "b", "c"), 1e-14)])
    axes = plotting.left_layers(found).axes[0]
    curve, limit = axes.lines
    assert list(curve.get_xdata()) == [0, 1, 2, 3] and list(curve.get_ydata()) == [0.3, 0.1, 0.001, 1e-14]
    assert list(limit.get_ydata()) == [0.02, 0.02] and axes.get_ylim()[0] == pytest.approx(2e-5)
    assert axes.texts[0].get_text() == "no effect expected below 0.02"
    assert len(plotting.left_layers(Errors(found.layers, 0.0)).axes[0].lines) == 1
    with pytest.raises(ValueError, match="left_layers: no layer was looked at"):
        plotting.left_layers(Errors([]))
