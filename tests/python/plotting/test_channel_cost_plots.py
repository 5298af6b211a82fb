"""Figure of outlier channels: errors of the other channels with the outliers, without them, and by scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
import pytest

from halfscope import plotting
from halfscope.plotting.channel_costs import MARKS, ROWS
from halfscope.plotting.svg import svg_of

ERRORS = {"whole": 0.05, "others": 0.5, "without": 0.1, "row": 0.9, "block": 0.8, "tensor": 1.0}


@dataclass
class Channels:
    """Costs of outlier channels, with numbers made by hand."""

    rows: list[dict[str, float]]
    format: str = "nvfp4"

    def to_pandas(self) -> pd.DataFrame:
        known = {"channel": 7, "ratio": 64.0, "stands_out": True}
        return pd.DataFrame([{**known, **row} for row in self.rows], [f"input of {at}" for at in range(len(self.rows))])


def test_each_operand_is_a_row_with_its_errors() -> None:
    plain = {**dict.fromkeys(ERRORS, 0.1), "stands_out": False}
    figure = plotting.channel_costs(Channels([ERRORS, plain]))
    axes = figure.axes[0]
    labels = axes.get_yticklabels()
    assert [each.get_text() for each in labels] == [
        f"input of {at}, channel 7: 64\N{MULTIPLICATION SIGN}" for at in range(2)
    ]
    assert [each.get_fontweight() for each in labels] == ["bold", "normal"] and axes.get_xscale() == "log"
    points = {each.get_label(): each.get_offsets().tolist() for each in axes.collections}
    expected = {words: [[ERRORS[name], 0.0], [0.1, 1.0]] for name, (words, _) in MARKS.items()}
    assert {words: points[words] for words in expected} == expected
    assert svg_of(figure) == svg_of(plotting.channel_costs(Channels([ERRORS, plain])))


def test_errors_that_are_not_known_or_not_finite_have_no_mark() -> None:
    unknown = {**ERRORS, **dict.fromkeys(("row", "block", "tensor"), math.nan), "whole": math.inf, "without": 0.0}
    figure = plotting.channel_costs(Channels([unknown]))
    shown = {each.get_text() for each in figure.legends[0].get_texts()}
    assert shown == {"other channels"} and svg_of(figure)


def test_many_operands_are_cut() -> None:
    figure = plotting.channel_costs(Channels([ERRORS] * (ROWS + 3)))
    assert len(figure.axes[0].get_yticklabels()) == ROWS
    assert figure.get_supxlabel().endswith("3 operands with less are left out.")


def test_nothing_to_draw_is_refused() -> None:
    for rows in ([dict.fromkeys(ERRORS, 0.0)], []):
        with pytest.raises(ValueError, match="channel_costs: nvfp4 makes no error in an operand"):
            plotting.channel_costs(Channels([{**row} for row in rows] or [dict.fromkeys(ERRORS, math.nan)]))
