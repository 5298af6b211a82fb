"""Style of the figures: a colour per arm that colour-blind readers can tell apart, and plain axes."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from halfscope.results.arms import Arm

# Okabe and Ito's palette without its yellow, which vanishes on white paper.
COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9")
# Lines differ in dashes too: arms that agree lie on top of each other, and a print may have no colours.
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))

RED, AMBER, GREEN, GREY, BLUE = "#D55E00", "#E69F00", "#009E73", "#666666", "#0072B2"

# As text, which is drawn ten times as fast as a formula, and shorter in a file.
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

# Beyond so many arms, arms that differ in nothing but their loss scale are coloured by it...
FEW = 7
# ... and those that are left stand out from the colours of the scales: black, vermilion, pink, orange.
BESIDE_SCALES = (COLOURS[0], COLOURS[2], COLOURS[5], COLOURS[4])
# Beyond so many arms a line per arm says nothing unless the arms are an order, as loss scales are.
MANY = 12


def line_style(place: int) -> dict:
    """Colour and dashes of the line at `place` among several."""
    return {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[place % len(DASHES)]}


def arm_style(arms: Sequence[Arm], name: str) -> dict:
    """Colour and dashes of the arm `name` of `arms`: the same in every figure of an experiment."""
    scales, by_scale = scale_colours(arms), arms_by_scale(arms)
    if scales and name in by_scale:
        return {"color": scales.to_rgba(math.log2(by_scale[name])), "linestyle": "-"}
    if scales:
        place = [other.name for other in arms if other.name not in by_scale].index(name)
        return {"color": BESIDE_SCALES[place % len(BESIDE_SCALES)], "linestyle": DASHES[1 + place % 3]}
    pairs = _pairs(arms)
    if pairs:
        place = list(dict.fromkeys(pairs.values())).index(pairs[name])
        return {"color": COLOURS[place % len(COLOURS)], "linestyle": DASHES[0 if pairs[name] == name else 1]}
    return line_style([arm.name for arm in arms].index(name))


def scale_colours(arms: Sequence[Arm]) -> ScalarMappable | None:
    """Colours by log2 of the loss scale, for a colour bar too; None where the arms are too few to need them."""
    scales = [math.log2(scale) for scale in arms_by_scale(arms).values()]
    if len(arms) <= FEW or len(scales) < len(arms) / 2:
        return None
    # Without viridis' yellow end, which vanishes on white paper.
    colours = LinearSegmentedColormap.from_list("scales", matplotlib.colormaps["viridis"](range(220)))
    return ScalarMappable(Normalize(min(scales), max(scales)), colours)


def arms_by_scale(arms: Sequence[Arm]) -> dict[str, float]:
    """The static loss scales of the arms whose gradients are not FP32: by name, of each scale its first arm."""
    first: dict[float, str] = {}
    for arm in arms:
        if not arm.in_fp32 and (scale := arm.static_scale) is not None and scale > 0:
            first.setdefault(scale, arm.name)
    return {name: scale for scale, name in first.items()}


def _pairs(arms: Sequence[Arm]) -> dict[str, str]:
    """Baseline of each arm's pair, if all arms are pairs of a baseline and one that is compared with it."""
    bases = {arm.name: arm.baseline or arm.name for arm in arms}
    return bases if len(arms) > 2 and set(Counter(bases.values()).values()) == {2} else {}


LEGEND_LINE = 0.21  # inches


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
    """A legend at the right of the axes, where it can hide nothing; the figure grows until it holds the legend."""
    labels = [label for axes in figure.axes for label in axes.get_legend_handles_labels()[1]]
    if labels:
        figure.legend(loc="outside right upper", frameon=False, handlelength=3)  # long enough to show the dashes
        lines = sum(1 + label.count("\n") for label in labels)
        figure.set_figheight(max(figure.get_figheight(), 0.2 + LEGEND_LINE * lines))


def legend_at(axes: Axes) -> None:
    """A legend of these axes alone, at their right."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.02), frameon=False, borderaxespad=0, handlelength=3)


def headline(figure: Figure, title: str, note: str = "") -> None:
    """A title over all panels, and a sentence under them."""
    figure.suptitle(wrapped(figure, title, 11), x=0.01, ha="left", weight="bold", size=10)
    if note:
        figure.supxlabel(wrapped(figure, note, 9), x=0.01, ha="left", size=9)


def add_note(figure: Figure, note: str) -> None:
    """A sentence under all panels, below what stands there; the figure grows by it."""
    lines = wrapped(figure, note, 10)  # with room for long words
    figure.supxlabel("\n".join(filter(None, (figure.get_supxlabel(), lines))), x=0.01, ha="left", size=9)
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * len(lines.split("\n")))


def wrapped(figure: Figure, text: str, size: int) -> str:
    """`text` in lines that fit the figure's width, in letters of `size` points; lines of its own stay apart."""
    letters = int(72 * figure.get_figwidth() / (0.52 * size))
    return "\n".join(textwrap.fill(line, letters) for line in text.split("\n"))


def percent(share: float) -> str:
    """A share as a reader wants it: 12.3 %, 0.04 %; "0 %" only where it is zero."""
    if share == 0:
        return "0 %"
    if share < 0.0001:
        return "< 0.01 %"
    return f"{100 * share:.2f} %" if share < 0.01 else f"{100 * share:.1f} %"


def power_of_two(scale: float) -> str:
    """A loss scale as a label: 1, 8, 65536 as they are, larger and fractional ones as powers of two."""
    exponent = math.log2(scale)
    if exponent != round(exponent) or 0 <= exponent <= 16:
        return f"{scale:g}"
    return power(round(exponent))


def power(exponent: int) -> str:
    """2 to the power of `exponent`, as text."""
    return f"2{str(exponent).translate(SUPERSCRIPTS)}"


def signed(number: int) -> str:
    """A number with a minus sign instead of a hyphen."""
    return str(number).replace("-", "\N{MINUS SIGN}")
