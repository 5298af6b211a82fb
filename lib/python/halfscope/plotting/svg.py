"""Figures as SVG files: small, the same bytes for the same records, letters as text."""

from __future__ import annotations

import io
import re

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

DPI = 200  # resolution of heat maps, which are pictures inside
# The letters that figures are laid out with, and others that are no wider for readers without them.
FONTS = "DejaVu Sans, Verdana, Arial, sans-serif"
SETTINGS = {"svg.hashsalt": "halfscope", "svg.fonttype": "none", "path.simplify_threshold": 0.25}
LENGTHS = re.compile(rb'\b(?:d|x|y|x1|x2|y1|y2|width|height|points|transform)="[^"]*"')
PATHS = re.compile(rb' d="[^"]*"')
STYLE = re.compile(rb' style="[^"]*"')
MARKERS = re.compile(rb'<g(?P<names>(?: clip-path="[^"]*")?)>\n(?P<uses>(?:<use [^>]* style="[^"]*"/>\n){2,})</g>')
LONG = re.compile(rb"-?\d+\.\d{3,}")


def svg_of(figure: Figure) -> bytes:
    """The figure as an SVG document. It is laid out once and cannot be laid out again."""
    canvas = FigureCanvasSVG(figure)
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    figure.set_dpi(DPI)
    drawn = io.BytesIO()
    with matplotlib.rc_context(SETTINGS):
        canvas.print_svg(drawn, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _shortened(_renumbered(drawn.getvalue()))


def _renumbered(drawn: bytes) -> bytes:
    """Clip paths and markers named in order, so that the same records give the same file, and a short one.

    matplotlib names clip paths by a hash of their position, whose last bits the layout solver leaves to chance.
    """
    return _in_order(_in_order(drawn, b"p", b"clip"), b"m", b"m")


def _in_order(drawn: bytes, kind: bytes, name: bytes) -> bytes:
    names: dict[bytes, bytes] = {}
    pattern = rb"\b%s[0-9a-f]{10}\b" % kind
    return re.sub(pattern, lambda found: names.setdefault(found[0], b"%s%d" % (name, len(names))), drawn)


def _shortened(drawn: bytes) -> bytes:
    """Lengths to a hundredth of a point, the fonts named once, no names of groups and no comments."""
    drawn = LENGTHS.sub(lambda found: LONG.sub(_hundredths, found[0]), drawn)
    drawn = PATHS.sub(lambda found: re.sub(rb"\s*([A-Zz])\s*", rb"\1", found[0]), drawn)
    drawn = re.sub(rb"font-family: [^;\"]*;? ?", b"", drawn)
    drawn = drawn.replace(b"<svg ", b'<svg font-family="' + FONTS.encode() + b'" ', 1)
    drawn = re.sub(rb"<!--.*?-->|<!DOCTYPE.*?>|<metadata>.*?</metadata>", b"", drawn, flags=re.DOTALL)
    drawn = re.sub(rb'<g id="\w+_\d+">', b"<g>", drawn)
    drawn = re.sub(rb' transform="rotate\(-0 [^"]*"', b"", drawn)
    return MARKERS.sub(_said_once, re.sub(rb"\s*\n\s*", b"\n", drawn))


def _said_once(markers: re.Match[bytes]) -> bytes:
    """The style that all markers of a group have as the group's, from which they inherit it."""
    styles = set(STYLE.findall(markers["uses"]))
    if len(styles) > 1 or b" opacity:" in markers["uses"]:  # which is no part of what is inherited
        return markers[0]
    return b"<g%s%s>\n%s</g>" % (markers["names"], styles.pop(), STYLE.sub(b"", markers["uses"]))


def _hundredths(number: re.Match[bytes]) -> bytes:
    return b"%g" % round(float(number[0]), 2)
