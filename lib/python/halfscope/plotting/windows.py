"""Windows of loss scales that fit each tensor, a bar per tensor, beside the scale recommended for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from halfscope.plotting.style import BLUE, GREEN, GREY, RED, headline, new_figure, power, tidy
from halfscope.results.loss_scales import OF_OUTPUT

if TYPE_CHECKING:
    from halfscope._core import TensorFit
    from halfscope.advice import ScaleAdvice

MOST = 40  # tensors that a figure shows
LETTERS = 32  # most of a name: a longer one keeps both ends, which tell layers apart


def scale_windows(advice: ScaleAdvice) -> Figure:
    """The scales that fit each tensor, log2, in the tensors' order; of more than 40, those that limit it most."""
    fits = _shown(advice)
    figure = new_figure(height=1.5 + 0.24 * max(len(fits), 3))
    axes = figure.subplots()
    for place, fit in enumerate(fits):
        _draw_window(axes, place, fit)
    _draw_advice(axes, advice)
    axes.set_yticks(range(len(fits)), [_shortened(fit.name) for fit in fits], size=8)
    axes.set_ylim(len(fits) - 0.4, -0.6)
    axes.set_xlabel("log2 of the loss scale")
    tidy(axes)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    if axes.get_legend_handles_labels()[1]:
        look = {"ncols": 3, "frameon": False, "fontsize": 9, "borderaxespad": 0.3}
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), **look)  # above, since names take the width
    headline(figure, f"Loss scales at which each tensor fits {advice.format}", _note(advice, len(fits)))
    return figure


def _shown(advice: ScaleAdvice) -> list[TensorFit]:
    asking = [fit for fit in advice.fits if not fit.any_scale]
    if len(asking) <= MOST:
        return asking
    against_underflow = sorted(asking, key=lambda fit: -fit.underflow_low_log2)
    against_overflow = sorted(asking, key=lambda fit: fit.overflow_high_log2)
    in_turn = [fit for pair in zip(against_overflow, against_underflow) for fit in pair]
    kept = set(list(dict.fromkeys(map(id, in_turn)))[:MOST])
    return [fit for fit in asking if id(fit) in kept]


def _draw_window(axes: Axes, place: int, fit: TensorFit) -> None:
    """A bar from the smallest to the largest scale; where there is none, what is asked for, as two arrowheads."""
    low, high = fit.underflow_low_log2, fit.overflow_high_log2
    if low <= high:
        look = {"color": BLUE, "alpha": 0.75, "label": _once(axes, "fits")}
        axes.barh(place, max(high - low, 0.15), left=low, height=0.6, **look)
        return
    axes.plot([high, low], [place, place], color=RED, linewidth=1, linestyle=":")
    axes.plot(high, place, "<", color=RED, markersize=6, label=_once(axes, "overflows above"))
    axes.plot(low, place, ">", color=RED, markerfacecolor="white", markersize=6, label=_once(axes, "underflows below"))


def _draw_advice(axes: Axes, advice: ScaleAdvice) -> None:
    if advice.joint_window_log2:
        low, high = advice.joint_window_log2
        label = f"fits all: {power(low)} to {power(high)}"
        axes.axvspan(low, high, color=GREEN, alpha=0.15, linewidth=0, zorder=0, label=label)
    best = advice.recommended_scale_log2
    if best is not None:
        words = "recommended" if advice.joint_window_log2 else "fits the most"
        axes.axvline(best, color=GREY, linewidth=1.4, linestyle="--", label=f"{words}: {power(best)}")


def _shortened(name: str) -> str:
    half = LETTERS // 2
    return name if len(name) <= LETTERS else f"{name[:half]}\N{HORIZONTAL ELLIPSIS}{name[1 - half :]}"


def _once(axes: Axes, label: str) -> str | None:
    return None if label in axes.get_legend_handles_labels()[1] else label


def _note(advice: ScaleAdvice, shown: int) -> str:
    share = f"{100 * advice.tolerance:g} % of a tensor's sum of magnitudes"
    rule = f"Fits: underflow costs at most {share}, and nothing overflows."
    left_out = sum(not fit.any_scale for fit in advice.fits) - shown
    lines = [rule]
    if any(fit.name.endswith(OF_OUTPUT) for fit in advice.fits):
        lines.append(f"{OF_OUTPUT.strip()}: gradient of a layer's output; the others are those of weights.")
    if left_out:
        lines.append(f"{left_out} tensors that limit the scale less are not shown.")
    return "\n".join(lines)
