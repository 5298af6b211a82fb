"""The exponent histogram of gradients, after Fig. 2b and Fig. 3 of "Mixed Precision Training"."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor, log2
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.formats import describe, label
from halfscope.plotting.style import AMBER, COLOURS, GREEN, RED, headline, new_figure, percent, power, signed, tidy
from halfscope.results import Experiment
from halfscope.results.histogram import Outcome, RecordedHistogram

if TYPE_CHECKING:
    from halfscope import Histogram

LOW, HIGH = -40, 16  # first and last binade drawn; both also hold what lies beyond them
END = HIGH + 2  # end of the axis
NAMES = {"weight_gradient": "Weight gradients", "activation_gradient": "Activation gradients"}


def gradient_histogram(experiment: Experiment, arm: str, role: str = "weight_gradient") -> Figure:
    """Share of all gradients per binade, unscaled, with the format's bands; zeros left, inf and NaN right."""
    histogram = experiment.histogram(arm, role)
    title = f"{NAMES[role]} of {arm}: all layers, all observed steps"
    return _draw_histogram(histogram, title, _caption(experiment, arm, histogram), "|gradient|, loss scale removed")


def value_histogram(histogram: Histogram | RecordedHistogram, title: str = "") -> Figure:
    """Any histogram, drawn with the bands of its format."""
    if not isinstance(histogram, RecordedHistogram):
        histogram = RecordedHistogram.of(histogram)
    return _draw_histogram(histogram, title, _band_shares(histogram), "|value|")


def bands(format: str) -> list[tuple[float, float, str, str]]:
    """Outcomes of |x| in a cast to `format`: edges, log2 and to the width of a line; colour; label."""
    about = describe(format)
    smallest, normal = (round(log2(about[key])) for key in ("smallest", "smallest_normal"))
    last_place = 2.0 ** (floor(log2(about["largest"])) - about["mantissa_bits"])
    edge = about["largest"] + last_place / 2
    # A tie goes to the even one: beyond an odd largest number to infinity.
    relation = "≥" if round(about["largest"] / last_place) % 2 else ">"
    overflow = round(log2(edge), 2)
    return [
        (LOW, smallest - 1, RED, f"flushed to zero\n≤ {power(smallest - 1)}"),
        (smallest - 1, normal, AMBER, f"subnormal\n{power(smallest)} to {power(normal - 1)}"),
        (normal, overflow, GREEN, "normal"),
        (overflow, END, RED, f"overflow {relation} {edge:g}"),
    ]


def _draw_histogram(histogram: RecordedHistogram, title: str, caption: str, unit: str) -> Figure:
    shares = 100 * histogram.within(LOW, HIGH) / max(histogram.elements, 1)
    figure = new_figure(height=4.0)
    zero, binades, special = figure.subplots(1, 3, sharey=True, width_ratios=[1.6, 29, 3])
    # The binades set the height: half the gradients behind a ReLU are zero, and would flatten everything else.
    binades.set_ylim(0, 1.35 * max(shares.max(), 1e-3))
    draw_binades(binades, shares, bands(histogram.format))
    binades.set_xlabel(f"exponent: log2 {unit}")
    draw_aside(zero, histogram, {"0": histogram.zeros})
    draw_aside(special, histogram, {"inf": histogram.infinities, "NaN": histogram.nans})
    zero.set_ylabel("share of all values (%)")
    zero.spines["left"].set_visible(True)
    headline(figure, title, caption)
    return figure


def draw_binades(axes: Axes, shares: np.ndarray, shown: Iterable[tuple[float, float, str, str]]) -> None:
    """Bars of `shares` (%) of the binades LOW..HIGH over the part of `bands`' bands that is on the axis."""
    axes.stairs(shares, np.arange(LOW, HIGH + 2), fill=True, color=COLOURS[1])
    top = axes.get_ylim()[1]
    for first, last, colour, words in shown:
        left, right = max(first, LOW), min(last, END)
        if left >= right:
            continue
        axes.axvspan(left, right, color=colour, alpha=0.12, linewidth=0, zorder=0)
        narrow = right - left < 4
        text = words.replace("\n", ": ") if narrow else words
        axes.text((left + right) / 2, 0.97 * top, text, ha="center", va="top", rotation=90 if narrow else 0, size=8)
    ticks = [LOW, *range(LOW + 10, HIGH - 5, 5), HIGH]
    axes.set_xticks(ticks, [f"≤ {signed(LOW)}", *map(signed, ticks[1:-1]), f"≥ {HIGH}"])
    axes.set(xlim=(LOW, END))
    tidy(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False)


def draw_aside(axes: Axes, histogram: RecordedHistogram, counts: dict[str, int]) -> None:
    """Bars for values that have no exponent, each with its share written above it (or at the top, where it is cut)."""
    top = axes.get_ylim()[1]
    for place, count in enumerate(counts.values()):
        share = count / max(histogram.elements, 1)
        axes.bar(place, 100 * share, width=0.8, color="#666666")
        cut = 100 * share > 0.8 * top
        axes.text(
            place, 0.97 * top if cut else 100 * share + 0.02 * top, percent(share),
            ha="center", va="top" if cut else "bottom", rotation=90, size=8, color="white" if cut else "black",
        )  # fmt: skip
    axes.set_xticks(range(len(counts)), list(counts), size=8)
    axes.set_xlim(-0.6, len(counts) - 0.4)
    tidy(axes)
    axes.spines["left"].set_visible(False)
    axes.tick_params(left=False, bottom=False)


def _caption(experiment: Experiment, arm: str, histogram: RecordedHistogram) -> str:
    lines = [_band_shares(histogram)]
    scales = {run.final_scale for run in experiment.runs[arm]} - {1.0}
    for scale in sorted(filter(None, scales)):
        scaled = histogram.outcome(round(np.log2(scale)))
        lines.append(f"As {label(histogram.format)}, times the loss scale {scale:g}: {_describe(scaled)}.")
    return "\n".join(lines)


def _band_shares(histogram: RecordedHistogram) -> str:
    unscaled = histogram.outcome()
    return f"As {label(histogram.format)}, unscaled: {_describe(unscaled)}. Exact zeros: {percent(unscaled.zeros)}."


def _describe(outcome: Outcome) -> str:
    return (
        f"{percent(outcome.flushed)} flushed to zero, {percent(outcome.subnormal)} subnormal, "
        f"{percent(outcome.overflow)} overflow"
    )
