"""SVG of figures: what many markers share stands in the file once."""

from __future__ import annotations

import re

from halfscope.plotting.style import new_figure
from halfscope.plotting.svg import svg_of


def drawn(markers: int, **look: object) -> str:
    figure = new_figure()
    axes = figure.subplots()
    axes.plot(range(markers), "o", color="#123456", alpha=0.5, **look)
    axes.set_axis_off()
    return svg_of(figure).decode()


def test_markers_have_their_style_from_their_group() -> None:
    svg = drawn(40, linewidth=0)
    (group,) = re.findall(r'<g clip-path="[^"]*" style="([^"]*)">\n<use', svg)
    assert "fill: #123456" in group and "fill-opacity: 0.5" in group
    assert len(re.findall(r'<use xlink:href="#m0" x="[0-9.]+" y="[0-9.]+"/>\n', svg)) == 40


def test_the_same_figure_is_the_same_file() -> None:
    assert drawn(3) == drawn(3)
    assert not re.search(r"\b[mp][0-9a-f]{10}\b", drawn(3))


def test_a_single_marker_keeps_its_own() -> None:
    assert re.search(r'<use [^>]*style="[^"]*fill: #123456', drawn(1))
