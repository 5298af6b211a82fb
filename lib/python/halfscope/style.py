"""How the figures look: colours that colour-blind readers can tell apart, one per arm, and plain axes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which vanishes on white paper.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
# Lines differ in dashes too: arms that agree lie on top of each other, and a print may have no colours.
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))

RED, AMBER, GREEN, GREY = "#D55E00", "#E69F00", "#009E73", "#666666"


def arm_style(arms: Sequence[str], arm: str) -> dict:
    """Colour and dashes of `arm`: the same in every figure of an experiment."""
    place = list(arms).index(arm)
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place % len(DASHES)]}


def new_figure(width: float = 7.2, height: float = 3.6) -> Figure:
    """An empty figure, inches. It belongs to no window, so nothing needs to be closed."""
    return Figure(figsize=(width, height), layout="constrained")


def tidy(axes: Axes, title: str = "") -> None:
    """Only the lines that carry meaning, and the title where reading begins."""
    axes.set_title(title, loc="left", fontsize=10, weight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def legend_beside(figure: Figure) -> None:
    """A legend at the right of the axes, where it can hide nothing."""
    if any(axes.get_legend_handles_labels()[1] for axes in figure.axes):
        figure.legend(loc="outside right upper", frameon=False)


def percent(share: float) -> str:
    """A share as a reader wants it: 12.3 %, 0.04 %; "0 %" only where it is zero."""
    if share == 0:
        return "0 %"
    if share < 0.0001:
        return "< 0.01 %"
    return f"{100 * share:.2f} %" if share < 0.01 else f"{100 * share:.1f} %"
