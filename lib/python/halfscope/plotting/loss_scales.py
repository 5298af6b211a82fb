"""Loss scales: predicted underflow and overflow at any scale, and the results of the arms at theirs."""

from __future__ import annotations

from math import log2
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from halfscope import ScaleAdvice
from halfscope.formats import label
from halfscope.plotting.gradients import NAMES
from halfscope.plotting.style import AMBER, BLUE, COLOURS, GREEN, RED, headline, legend_at, new_figure, power, tidy
from halfscope.results import Arm, Experiment
from halfscope.results.loss_scales import (
    OUTCOMES,
    advice,
    baseline,
    counted,
    gradients,
    scale_series,
    static_scales,
)

PREDICTED = range(-10, 41)  # log2 S
CURVES = COLOURS[1:]
ENOUGH = 4  # static arms that make a curve of the metric against the scale
LOOKS: dict[str, dict[str, Any]] = {
    "flushed": {"color": RED, "linestyle": "-", "marker": "o"},
    "subnormal": {"color": AMBER, "linestyle": (0, (5, 2)), "marker": "s"},
    "overflow": {"color": BLUE, "linestyle": (0, (5, 1.5, 1, 1.5)), "marker": "^"},
}
WORDS = {"flushed": "flushed to zero", "subnormal": "subnormal", "overflow": "overflow"}


def scale_window(experiment: Experiment) -> Figure | None:
    """Shares of the FP32 arm's gradients that a cast at S = 2^-10..2^40 flushes, makes subnormal or infinite, per role.

    Lines are exact, from the histograms of all observed steps; markers are what the arms with a static scale counted;
    shaded are the scales that fit every gradient. None where no FP32 arm has histograms.
    """
    base = baseline(experiment)
    histograms = gradients(experiment, base)
    if not histograms:
        return None
    figure = new_figure(height=0.9 + 2.5 * len(histograms))
    rows = figure.subplots(len(histograms), 1, sharex=True, squeeze=False)[:, 0]
    usable = advice(experiment, base)
    for axes, (role, histogram) in zip(rows, histograms.items()):
        outcomes = [histogram.of_nonzero().outcome(scale) for scale in PREDICTED]
        for outcome, look in LOOKS.items():
            shares = [100 * getattr(found, outcome) for found in outcomes]
            axes.plot(PREDICTED, shares, label=WORDS[outcome], linewidth=1.6, color=look["color"], ls=look["linestyle"])
            _mark_counted(axes, experiment, role, outcome)
        _shade(axes, usable)
        axes.set(xlim=(PREDICTED[0], PREDICTED[-1]), ylim=(-2, 102), ylabel="non-zero gradients (%)")
        tidy(axes, NAMES[role])
    _scale_axis(rows[-1], PREDICTED[0], PREDICTED[-1], 5)
    legend_at(rows[0])
    format = label(next(iter(histograms.values())).format)
    headline(figure, f"Effect of {format} on the gradients of {base}, by loss scale", _window_note(usable, rows[0]))
    return figure


def scale_curve(experiment: Experiment) -> Figure | None:
    """Metric, and counted shares of the gradients, against log2 of the loss scale. None for less than 4 static arms."""
    series = _curves(experiment)
    if not series:
        return None
    name, arms = next(iter(series.items()))
    figure = new_figure(height=5.6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.2, 1])
    lines = {line.name: line for line in experiment.arms}
    for colour, (words, points) in zip(CURVES, series.items()):
        _draw_metric(upper, {scale: lines[arm] for arm, scale in points.items()}, words or "static scale", colour)
    _draw_baseline(upper, lines.get(baseline(experiment) or ""))
    _draw_other_arms(upper, experiment, {arm for points in series.values() for arm in points})
    _mark_diverged(upper, [(scale, lines[arm]) for points in series.values() for arm, scale in points.items()])
    arrow = "\n(lower is better)" if experiment.lower_is_better else ""
    upper.set_ylabel(experiment.metric_label + arrow)
    upper.margins(y=0.15)
    tidy(upper, "Result")
    _draw_shares(lower, experiment, arms)
    tidy(lower, f"Gradients{' of ' + name if name else ''}, as counted (no marker: none)")
    exponents = [exponent for line in upper.lines for exponent in line.get_xdata() if line.get_marker() != "None"]
    low, high = min(exponents), max(exponents)
    _scale_axis(lower, low - 0.6, high + 0.6, 2 if high - low > 12 else 1)
    legend_at(upper)
    legend_at(lower)
    return figure


def summary_share(experiment: Experiment, arm: str, outcome: str) -> float | None:
    """Share of the non-zero gradients of both roles: the summary's, or counted here where it has none."""
    line = next(line for line in experiment.arms if line.name == arm)
    if getattr(line, outcome) is not None:
        return getattr(line, outcome)
    shares = counted(experiment, arm)
    return shares[outcome] if shares else None


def _mark_counted(axes: Axes, experiment: Experiment, role: str, outcome: str) -> None:
    points = [(log2(s), shares[outcome]) for arm, s in static_scales(experiment).items()
              if (shares := counted(experiment, arm, role)) and shares[outcome] > 0]  # fmt: skip
    if points:
        scales, shares = np.array(points).T
        look = LOOKS[outcome]
        axes.plot(scales, 100 * shares, look["marker"], color=look["color"], markerfacecolor="white", markersize=5,
                  label=f"{WORDS[outcome]}, counted", clip_on=False, zorder=3)  # fmt: skip


def _shade(axes: Axes, usable: ScaleAdvice | None) -> None:
    if usable and usable.joint_window_log2:
        axes.axvspan(*usable.joint_window_log2, color=GREEN, alpha=0.13, linewidth=0, zorder=0)


def _window_note(usable: ScaleAdvice | None, axes: Axes) -> str:
    if usable is None:
        return ""
    lines = "Lines: predicted from the histograms of all observed steps."
    if any(label.endswith(", counted") for label in axes.get_legend_handles_labels()[1]):
        lines += (
            " Markers: what the arms counted, where not none;\n"
            "below the line where values arrive as zeros, having been flushed nearer the loss."
        )
    if usable.joint_window_log2 is None:
        return f"No single scale fits all gradients.\n{lines}"
    low, high = usable.joint_window_log2
    return (
        f"Shaded: scales {power(low)} to {power(high)}. At these, underflow costs no gradient more than "
        f"{100 * usable.tolerance:g} %\nof its sum of magnitudes, and nothing overflows.\n{lines}"
    )


def _curves(experiment: Experiment) -> dict[str, dict[str, float]]:
    """Series of static scales that are long enough for a curve; of a single one only a scale's first arm counts."""
    long = {name: arms for name, arms in scale_series(experiment).items() if len(arms) >= ENOUGH}
    if len(long) > 1:
        return long
    arms = static_scales(experiment)
    return {"": arms} if len(arms) >= ENOUGH else {}


def _draw_metric(axes: Axes, lines: dict[float, Arm], label: str, colour: str) -> None:
    means = [np.nan if line.mean is None else line.mean for line in lines.values()]
    axes.plot(list(map(log2, lines)), means, "o-", color=colour, markersize=5, label=label)
    for scale, line in lines.items():
        if line.low is not None and line.high is not None:
            axes.plot([log2(scale)] * 2, [line.low, line.high], "_-", color=colour, linewidth=1, alpha=0.7)


def _draw_baseline(axes: Axes, line: Arm | None) -> None:
    if line is None or line.mean is None:
        return
    axes.axhline(line.mean, color=COLOURS[0], linewidth=1.2, label=line.name)
    if line.low is not None and line.high is not None:
        axes.axhspan(line.low, line.high, color=COLOURS[0], alpha=0.08, linewidth=0)


def _draw_other_arms(axes: Axes, experiment: Experiment, of_curves: set[str]) -> None:
    """The FP16 arms that are no point of the curve, as dynamic scaling, each where its loss scale ended."""
    drawn = {*of_curves, baseline(experiment)}
    others = [line for line in experiment.arms if line.name not in drawn and experiment.runs[line.name]]
    for line, marker, colour in zip(others, "DsP", (COLOURS[2], COLOURS[5], COLOURS[3])):
        ends = [run.final_scale for run in experiment.runs[line.name] if run.final_scale]
        if ends and line.mean is not None:
            end = float(np.mean(np.log2(ends)))
            label = f"{line.name}\n(scale ends at 2^{end:.3g})"
            axes.plot(end, line.mean, marker, color=colour, markersize=8, label=label, zorder=4)


def _mark_diverged(axes: Axes, lines: list[tuple[float, Arm]]) -> None:
    broken = sorted({log2(scale) for scale, line in lines if line.diverged})
    if broken:
        axes.plot(broken, [0.04] * len(broken), "x", color=RED, markersize=7, markeredgewidth=2, label="diverged",
                  transform=axes.get_xaxis_transform(), clip_on=False)  # fmt: skip


def _draw_shares(axes: Axes, experiment: Experiment, arms: dict[str, float]) -> None:
    """Shares on a logarithmic axis: a millionth of the gradients that overflows already stops a step."""
    for outcome in OUTCOMES:
        shares = [summary_share(experiment, arm, outcome) for arm in arms]
        percents = np.array([np.nan if not share else 100 * share for share in shares])
        if np.isfinite(percents).any():
            axes.plot(list(map(log2, arms.values())), percents, markersize=4, label=WORDS[outcome], **LOOKS[outcome])
    axes.set_yscale("log")
    smallest = min((line.get_ydata()[line.get_ydata() > 0].min() for line in axes.lines), default=1)
    axes.set_ylim(10 ** np.clip(np.floor(np.log10(smallest)), -6, -1), 200)
    axes.yaxis.set_major_locator(LogLocator(numticks=5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{share:g}"))
    axes.minorticks_off()
    axes.set_ylabel("non-zero gradients (%)")


def _scale_axis(axes: Axes, low: float, high: float, every: int) -> None:
    ticks = [tick for tick in range(int(np.ceil(low)), int(np.floor(high)) + 1) if tick % every == 0]
    axes.set_xticks(ticks, list(map(power, ticks)))
    axes.set(xlim=(low, high), xlabel="loss scale S")
