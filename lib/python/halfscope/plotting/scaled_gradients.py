"""Gradients as they are and times a loss scale, beside what a format holds: Fig. 3 of "Mixed Precision Training"."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.formats import label
from halfscope.plotting.gradients import HIGH, LOW, NAMES, bands, draw_aside, draw_binades
from halfscope.plotting.style import headline, new_figure, percent, power_of_two
from halfscope.results import Experiment
from halfscope.results.histogram import RecordedHistogram

ROOM = 1.62  # height of an axis in heights of its highest bar: the labels of the bands stand above the bars


def scaled_gradient_histogram(experiment: Experiment, arm: str, role: str, log2_scale: int) -> Figure:
    """The histogram of `role` in `arm`, unscaled above and times 2^log2_scale below, with the share of every band."""
    histogram = experiment.histogram(arm, role)
    figure = new_figure(height=6.4)
    rows = figure.subplots(2, 3, sharey=True, width_ratios=[1.6, 29, 3])
    # One height for both rows, so that they compare; it is shared, and the bars at the sides need to know it.
    heights = [histogram.shifted(shift).within(LOW, HIGH).max(initial=0) for shift in (0, log2_scale)]
    rows[0][1].set_ylim(0, ROOM * max(100 * max(heights) / max(histogram.elements, 1), 1e-3))
    for row, shift in zip(rows, (0, log2_scale)):
        _draw_row(row, histogram.shifted(shift))
        times = f"times the loss scale S = {power_of_two(2.0**shift)}" if shift else "unscaled"
        row[1].set_title(f"{NAMES[role]} {times}", loc="left", size=10)
        row[1].set_xlabel(f"exponent: log2 |{'S ' if shift else ''}gradient|")
    zeros = histogram.zeros / max(histogram.elements, 1)
    headline(
        figure,
        f"{NAMES[role]} of {arm} as {label(histogram.format)} sees them: all layers, all observed steps",
        "Shares in the bands: of the non-zero finite values, exact. "
        f"Bars: of all values, of which {percent(zeros)} are zero.",
    )
    return figure


def _draw_row(row: list[Axes], histogram: RecordedHistogram) -> None:
    zero, binades, special = row
    shares = 100 * histogram.within(LOW, HIGH) / max(histogram.elements, 1)
    outcome = histogram.of_nonzero().outcome()
    found = (outcome.flushed, outcome.subnormal, outcome.normal, outcome.overflow)
    told = [
        (left, right, colour, f"{words}\n{percent(share)}")
        for (left, right, colour, words), share in zip(bands(histogram.format), found)
    ]
    draw_binades(binades, shares, told)
    draw_aside(zero, histogram, {"0": histogram.zeros})
    draw_aside(special, histogram, {"inf": histogram.infinities, "NaN": histogram.nans})
    zero.set_ylabel("share of all values (%)")
    zero.spines["left"].set_visible(True)
