"""Error of a training's gradients against the number of layers that are left out of the formats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from halfscope.plotting.style import BLUE, GREY, headline, new_figure, tidy

if TYPE_CHECKING:
    from halfscope.torch import GradientErrors

DECADES = 3.0  # below the limit, where the axis ends


def left_layers(found: GradientErrors) -> Figure:
    """Error over noise that the first layers of the ranking leave, as the optimizer sees it, beside the limit.

    Raises ValueError where no layer was looked at.
    """
    if not found.layers:
        raise ValueError("left_layers: no layer was looked at, since no effect is expected; give a smaller limit=")
    counts = [len(each.layers) for each in found.layers]
    errors = [found.seen(each.error) for each in found.layers]
    figure = new_figure(height=3.2)
    axes = figure.subplots()
    axes.plot(counts, errors, color=BLUE, marker="o", markersize=5)
    axes.set_yscale("log")
    if found.limit > 0:
        axes.axhline(found.limit, color=GREY, linewidth=1, linestyle="--")
        axes.annotate(f"no effect expected below {found.limit:g}", (counts[-1], found.limit), (0, -4),
                      textcoords="offset points", ha="right", va="top", color=GREY, size=8)  # fmt: skip
        axes.set_ylim(bottom=found.limit * 10**-DECADES)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("layers left out of the formats")
    axes.set_ylabel("error over noise")
    tidy(axes)
    headline(figure, "Error of the gradients by the number of layers left out")
    return figure
