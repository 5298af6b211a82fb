"""Maps of where each technique's effect begins: harm along an axis, its measured and its predicted beginning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from halfscope.plotting.style import AMBER, BLUE, COLOURS, GREY, RED, new_figure, tidy
from halfscope.results import Experiment

LEAST, MOST = -0.1, 1.1  # range of the share that is missed; larger and smaller ones stand at the edges
MARKERS = "osD^vP"
MISSED = "share missed (%)"  # as the titles say, of FP32's decrease of the loss
LOSSES = {  # shares of a gradient that a cast loses, and their wholes
    "lost_magnitude": ("By flushed magnitude", "the sum of magnitudes"),
    "lost_energy": ("By lost energy", "the sum of squares"),
}
WEIGHTED = "_weighted"  # ends the name of a series whose loss is multiplied by a constant


class Rate(NamedTuple):
    """A learning rate that people use, and who."""

    rate: float
    name: str


# Published recipes: Krizhevsky 2012 and Simonyan 2014; He 2016, whose rate falls to the second; Radford 2016; Vaswani
# 2017, base, the peak; Devlin 2019, fine-tuning; Touvron 2023, 7B, whose cosine ends at the second.
EVERYDAY = {
    ("cnn", "sgd"): (Rate(1e-2, "AlexNet, VGG"), Rate(1e-4, "ResNet-50's end")),
    ("cnn", "adam"): (Rate(2e-4, "DCGAN"),),
    ("transformer", "adam"): (Rate(7e-4, "base model's peak"),),
    ("bert", "adam"): (Rate(2e-5, "fine-tuning"),),
    ("llama", "adam"): (Rate(3e-4, "pre-training"), Rate(3e-5, "pre-training's end")),
}


class Series(NamedTuple):
    """The points of one arm along the axis, ascending."""

    series: str
    variant: str
    points: list[dict]
    onset: dict | None


def series_of(found: dict) -> list[Series]:
    """The points of a finding by series and arm."""
    groups: dict[tuple[str, str], list[dict]] = {}
    for point in found["points"]:
        groups.setdefault((point["series"], point["variant"]), []).append(point)
    onsets = {(line["series"], line["variant"]): line for line in found["onsets"]}
    return [
        Series(*key, sorted(points, key=lambda point: point["place"]), onsets.get(key))
        for key, points in groups.items()
    ]


def where_master_copy(experiment: Experiment) -> Figure | None:
    """Harm of weights of 16 bits by learning rate, a panel per network and optimizer; below, by the applied share.

    None without that finding.
    """
    found = experiment.summary.get("where_master_copy")
    if not found:
        return None
    series = series_of(found)
    panels = list(dict.fromkeys(line.series for line in series))
    optimizers = list(dict.fromkeys(name.rpartition("_")[2] for name in panels))
    networks = list(dict.fromkeys(name.rpartition("_")[0] for name in panels))
    colours = _colours(line.variant for line in series)
    figure = new_figure(width=3.0 * max(len(networks), 2), height=2.7 * (len(optimizers) + 1))
    top, bottom = figure.subfigures(2, 1, height_ratios=(len(optimizers), 1))
    grid = top.subplots(len(optimizers), len(networks), squeeze=False, sharex=True, sharey=True)
    for row, optimizer in zip(grid, optimizers):
        for axes, network in zip(row, networks):
            own = [line for line in series if line.series == f"{network}_{optimizer}"]
            axes.set_visible(bool(own))
            for line in own:
                _draw_series(axes, line, colours[line.variant])
            _mark_rates(axes, EVERYDAY.get((network, optimizer), ()))
            axes.set_xscale("log")
            tidy(axes, f"{network}, {optimizer}")
        row[0].set_ylabel(MISSED)
    for column in grid.T:
        last = [axes for axes in column if axes.get_visible()][-1]
        last.set_xlabel("learning rate")
        last.tick_params(labelbottom=True)
    _limit(grid.flat, found["margin"])
    left = bottom.subplots(1, 2, width_ratios=(3, 1))
    _draw_by_applied(left[0], series, found)
    left[1].axis("off")
    band = Line2D([], [], color=AMBER, linewidth=4, alpha=0.35, label="everyday learning rate")
    marks = [*_marks(colours, found["margin"]), band, *_network_marks(networks)]
    left[1].legend(handles=marks, loc="center left", frameon=False, fontsize=8)
    _title(top, "Share of FP32's loss decrease that weights of 16 bits miss, by learning rate (same seeds)")
    return figure


def _title(figure: SubFigure, text: str) -> None:
    figure.suptitle(text, x=0.01, ha="left", weight="bold", size=10)


def _draw_by_applied(axes: Axes, series: list[Series], found: dict) -> None:
    own = [line.series.rpartition("_")[0] for line in series]
    _draw_points(axes, series, own, "applied", [line.variant for line in series])
    _mark_threshold(axes, found["applied_where_harm_begins"])
    axes.set(xlabel="share of the intended update that is applied", ylabel=MISSED, xlim=(-0.02, 1.1))
    _limit([axes], found["margin"])
    tidy(axes, "By the share that is applied")


def _network_marks(networks: Sequence[str]) -> list[Line2D]:
    look = {"color": GREY, "linestyle": "none", "markersize": 5}
    return [Line2D([], [], marker=MARKERS[i % len(MARKERS)], label=name, **look) for i, name in enumerate(networks)]


def _mark_rates(axes: Axes, rates: Iterable[Rate]) -> None:
    for rate in rates:
        axes.axvline(rate.rate, color=AMBER, linewidth=4, alpha=0.35, zorder=0)
        _vertical_text(axes, rate.rate, rate.name)


def _mark_threshold(axes: Axes, share: float) -> None:
    """The share at which the law of the dashed lines has harm begin."""
    axes.axvline(share, color=GREY, linewidth=1, linestyle=":")
    _vertical_text(axes, share, f"predicted from {share:g} on")


def _vertical_text(axes: Axes, place: float, text: str) -> None:
    look = {"rotation": 90, "ha": "right", "va": "top", "fontsize": 7, "color": GREY}
    axes.annotate(text, (place, 100 * MOST), (-2, 0), textcoords="offset points", **look)


def where_loss_scaling(experiment: Experiment) -> Figure | None:
    """Harm of FP16 without loss scaling by the positions of the loss, a panel per network; below, by what casts lose.

    None without that finding.
    """
    found = experiment.summary.get("where_loss_scaling")
    if not found:
        return None
    series = series_of(found)
    networks = list(dict.fromkeys(_network(line) for line in series))
    colours = _colours(_way(line) for line in series)
    figure = new_figure(width=3.0 * max(len(networks), 2), height=5.6)
    top, bottom = figure.subfigures(2, 1)
    panels = top.subplots(1, len(networks), squeeze=False, sharey=True)[0]
    for axes, network in zip(panels, networks):
        for line in series:
            if _network(line) == network:
                _draw_series(axes, line, colours[_way(line)])
        axes.set_xscale("log", base=2)
        axes.set_xlabel("positions that the loss averages over")
        tidy(axes, network)
    panels[0].set_ylabel(MISSED)
    _limit(panels, found["margin"])
    shares = bottom.subplots(1, 3, width_ratios=(3, 3, 2))
    ways, of_lines = [_way(line) for line in series], [_network(line) for line in series]
    for axes, (key, (title, whole)) in zip(shares, LOSSES.items()):
        _draw_points(axes, series, of_lines, key, ways)
        axes.set_xlabel(f"share of {whole},\nof the gradient that loses most")
        tidy(axes, title)
    _mark_threshold(shares[0], found["flushed_where_harm_begins"])
    shares[0].set_ylabel(MISSED)
    shares[1].set_xscale("log")
    _limit(shares[:2], found["margin"])
    shares[2].axis("off")
    marks = [*_marks(colours, found["margin"]), *_network_marks(networks)]
    shares[2].legend(handles=marks, loc="center left", frameon=False, fontsize=8)
    _title(top, "Share of FP32's loss decrease that FP16 misses, by the positions of the mean (same seeds)")
    return figure


def _network(line: Series) -> str:
    """A series without what says that the loss is multiplied by a constant."""
    return line.series.removesuffix(WEIGHTED)


def _way(line: Series) -> str:
    """How a loss comes to so many positions."""
    kind = "multiplied by a constant" if line.series.endswith(WEIGHTED) else "a real mean"
    return f"{kind}, {line.variant}"


def _draw_points(axes: Axes, series: Sequence[Series], networks: Sequence[str], key: str, kinds: Sequence[str]) -> None:
    """The points of all lines against a value of theirs: a marker per network, a colour per kind of line."""
    markers = dict(zip(dict.fromkeys(networks), MARKERS))
    colours = _colours(kinds)
    for line, network, kind in zip(series, networks, kinds):
        shown = [point for point in line.points if point.get(key) is not None and _height(point) is not None]
        axes.plot(
            [point[key] for point in shown],
            [_height(point) for point in shown],
            markers[network],
            color=colours[kind],
            markersize=4,
            alpha=0.75,
        )


def where_fp32_sums(experiment: Experiment) -> Figure | None:
    """Errors of sums by length, measured (markers) and in closed form (lines); below, the harm of training with them.

    None without that finding.
    """
    found = experiment.summary.get("where_fp32_sums")
    if not found:
        return None
    kinds = list(dict.fromkeys(row["terms"] for row in found["errors"]))
    models = list(dict.fromkeys(row["model"] for row in found["errors"]))
    colours = _colours(models)
    series = series_of(found)
    names = list(dict.fromkeys(line.series for line in series))
    figure = new_figure(width=12.5, height=6.6 if names else 3.6)
    parts = figure.subfigures(2 if names else 1, 1, height_ratios=(1.15, 1) if names else None, squeeze=False)[:, 0]
    for axes, kind in zip(parts[0].subplots(1, len(kinds), sharey=True, squeeze=False)[0], kinds):
        for model in models:
            rows = [row for row in found["errors"] if row["terms"] == kind and row["model"] == model]
            _draw_errors(axes, rows, colours[model])
        axes.set_xscale("log", base=2)
        axes.set(yscale="log", ylim=(1e-8, 3), xlabel="terms of a sum")
        tidy(axes)
        axes.set_title(kind.replace(": ", ":\n").replace(", the", ",\nthe"), loc="left", fontsize=8)
    parts[0].axes[0].set_ylabel("RMS error / RMS sum")
    parts[0].legend(handles=_model_marks(colours), loc="outside right upper", frameon=False, fontsize=8)
    _title(parts[0], "Error of a sum, by format and order")
    if names:
        _draw_harm_of_sums(parts[1], series, names, found["margin"])
    return figure


def _draw_errors(axes: Axes, rows: list[dict], colour: str) -> None:
    finite = [row for row in rows if row["error"] is not None and row["error"] > 0]
    axes.plot([row["count"] for row in finite], [row["error"] for row in finite], "o", color=colour, markersize=4)
    expected = [row for row in rows if row["expected"] is not None]
    axes.plot([row["count"] for row in expected], [row["expected"] for row in expected], color=colour, linewidth=1.2)
    infinite = [row["count"] for row in rows if row["error"] is None]
    axes.plot(infinite, [2] * len(infinite), "x", color=colour, markersize=6)


def _model_marks(colours: dict[str, str]) -> list[Line2D]:
    marks = [Line2D([], [], color=colour, marker="o", markersize=4, label=name) for name, colour in colours.items()]
    words = {"o": "measured", "x": "overflows"}
    marks += [Line2D([], [], color=GREY, marker=mark, linestyle="none", label=text) for mark, text in words.items()]
    return [*marks, Line2D([], [], color=GREY, label="closed form")]


def _draw_harm_of_sums(figure: SubFigure, series: list[Series], names: list[str], margin: float) -> None:
    colours = _colours(line.variant for line in series)
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names):
        for line in series:
            if line.series == name:
                _draw_series(axes, line, colours[line.variant])
        axes.set_xscale("log", base=2)
        axes.set_xlabel("terms of a sum")
        tidy(axes, name.replace("_", " "))
    panels[0].set_ylabel(MISSED)
    _limit(panels, margin)
    figure.legend(handles=_marks(colours, margin), loc="outside right upper", frameon=False, fontsize=8)
    _title(figure, "Share of FP32's loss decrease that a training with such sums misses (same seeds)")


def _colours(names: Iterable[str]) -> dict[str, str]:
    palette = (BLUE, RED, *COLOURS[3:], COLOURS[0])
    return {name: palette[place % len(palette)] for place, name in enumerate(dict.fromkeys(names))}


def _height(point: dict) -> float | None:
    """Percent, at the edge where it lies beyond; of a diverged arm the upper one."""
    if point["diverged"]:
        return 100 * MOST
    return None if point["missed"] is None else 100 * min(max(point["missed"], LEAST), MOST)


def _draw_series(axes: Axes, line: Series, colour: str) -> None:
    """Filled markers are harmed, hollow ones are not, grey ones undecided; bars are 95 % intervals."""
    shown = [(point, height) for point in line.points if (height := _height(point)) is not None]
    axes.plot([point["place"] for point, _ in shown], [height for _, height in shown], color=colour, linewidth=1)
    for point, height in shown:
        if point["low"] is not None and not point["diverged"]:
            ends = [100 * min(max(point[end], LEAST), MOST) for end in ("low", "high")]
            axes.plot([point["place"]] * 2, ends, color=colour, linewidth=1, alpha=0.6)
        face = {"harm": colour, "none": "white"}.get(point["harm"], "#cccccc")
        axes.plot(
            point["place"], height, "x" if point["diverged"] else "o", color=colour, markerfacecolor=face, markersize=5
        )
    if line.onset and line.onset["predicted"] is not None:
        axes.axvline(line.onset["predicted"], color=colour, linewidth=1.2, linestyle="--", alpha=0.8)


def _limit(panels: Iterable[Axes], margin: float) -> None:
    for axes in panels:
        axes.set_ylim(100 * LEAST - 3, 100 * MOST + 3)
        axes.axhline(100 * margin, color=GREY, linewidth=0.8, linestyle=":")


def _marks(colours: dict[str, str], margin: float) -> list[Line2D]:
    arms = [Line2D([], [], color=colour, label=name) for name, colour in colours.items()]
    look: Callable[..., Line2D] = lambda face, label: Line2D(  # noqa: E731
        [], [], color=GREY, marker="o", markerfacecolor=face, linestyle="none", label=label
    )
    return [
        *arms,
        look(GREY, "harm"),
        look("white", "no harm"),
        look("#cccccc", "undecided"),
        Line2D([], [], color=GREY, marker="x", linestyle="none", label="diverges"),
        Line2D([], [], color=GREY, linestyle="--", label="predicted beginning of harm"),
        Line2D([], [], color=GREY, linewidth=0.8, linestyle=":", label=f"harm: 95 % interval above {100 * margin:g} %"),
    ]
