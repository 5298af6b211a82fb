"""The tables of a report: arms, predictions, settings, environment, reductions."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from halfscope.formats import label
from halfscope.plotting.predictions import predicted_arms, predictions_in_words
from halfscope.plotting.style import FEW, percent
from halfscope.report.markup import folded, table
from halfscope.results import Arm, Experiment, Prediction, Run

NOTHING = "\N{EN DASH}"
ARROW = "\N{RIGHTWARDS ARROW}"
GRADIENT_NOTE = (
    "Gradients: share of the non-zero elements of activations' and weights' together, over all observed steps."
)
WOULD_NOTE = " FP32 arms flush nothing: theirs is the share that a cast of their gradients to {} would flush."

UPDATES_NOTE = (
    "Updates lost: share of the updates that are too small to change a weight stored in {}; arms with FP32 weights, or "
    "an FP32 master copy of them, apply them all the same."
)


def arm_table(experiment: Experiment) -> str:
    """The arms side by side: metric with interval, divergence, lost updates, gradients where counted; each seed."""
    better = " (lower is better)" if experiment.lower_is_better else ""
    head = ["arm", experiment.metric_label + better, "95 % interval", "diverged", "updates lost"]
    extra = _gradient_columns(experiment)
    rows = (
        [*_arm_row(arm, experiment.digits), *(cells[place] for cells in extra.values())]
        for place, arm in enumerate(experiment.arms)
    )
    arms = table([*head, *extra], rows, numeric=range(1, len(head) + len(extra)))
    return "\n".join([arms + _note(experiment), _seed_table(experiment)]).rstrip()


def _seed_table(experiment: Experiment) -> str:
    """The metric of every seed by arm; empty where no arm has two."""
    rows = [
        [arm.name, *("diverged" if value is None else f"{value:.{experiment.digits}f}" for value in arm.values)]
        for arm in experiment.arms
    ]
    most = max(map(len, rows), default=0)
    if most < 3:
        return ""
    head = ["arm", *(f"seed {place}" for place in range(1, most))]
    padded = (row + [NOTHING] * (most - len(row)) for row in rows)
    return folded(f"{experiment.metric_label} of each seed", table(head, padded, numeric=range(1, most)))


def _gradient_columns(experiment: Experiment) -> dict[str, list[str]]:
    """Columns that only newer results fill; FP32 arms have their own, since no cast has touched their gradients."""
    would = f"{_formats(experiment)} would"
    narrow = [not arm.in_fp32 for arm in experiment.arms]
    columns = {
        "gradients flushed": _cells(experiment, "flushed", narrow),
        f"{would} flush": _cells(experiment, "flushed", [not own for own in narrow]),
        "gradients overflowing": _cells(experiment, "overflow", narrow),
        "steps skipped": _cells(experiment, "skipped", [True] * len(narrow)),
    }
    return {title: cells for title, cells in columns.items() if set(cells) != {NOTHING}}


def _cells(experiment: Experiment, name: str, shown: Sequence[bool]) -> list[str]:
    values = [getattr(arm, name) if own else None for arm, own in zip(experiment.arms, shown)]
    return [NOTHING if value is None else f"{value:g}" if name == "skipped" else percent(value) for value in values]


def _note(experiment: Experiment) -> str:
    """Says what the columns count."""
    notes = []
    counted = [arm for arm in experiment.arms if arm.flushed is not None]
    if counted:
        would = WOULD_NOTE.format(_formats(experiment)) if any(arm.in_fp32 for arm in counted) else ""
        notes.append(GRADIENT_NOTE + would)
    if any(arm.lost_updates is not None for arm in experiment.arms):
        notes.append(UPDATES_NOTE.format(_formats(experiment)))
    return f'\n<p class="note">{" ".join(notes)}</p>' if notes else ""


def _formats(experiment: Experiment) -> str:
    formats = {experiment.format_of(arm.name) for arm in experiment.arms}
    return " or ".join(sorted(map(label, formats)))


def prediction_table(experiment: Experiment) -> str:
    """Flushed share of every tensor at the first step, predicted and counted, by arm; empty where there are none."""
    arms = predicted_arms(experiment)
    if not arms:
        return ""
    found = {(line.tensor, line.role, line.arm): line for line in experiment.predictions}
    rows = []
    for tensor, role in dict.fromkeys((line.tensor, line.role) for line in experiment.predictions):
        lines = [found.get((tensor, role, arm)) for arm in arms]
        elements = next(f"{line.elements:,}" for line in lines if line)
        rows.append([tensor, role.replace("_", " "), elements, *map(_prediction_cell, lines)])
    head = ["tensor, nearest the loss first", "role", "elements", *arms]
    every = table(head, rows, numeric=range(2, len(head)))
    words = escape(predictions_in_words(experiment).replace("\n", " "))
    return f"<h3>Flushed at the first step: predicted {ARROW} counted</h3>\n<p>{words}</p>\n" + folded(
        "Every tensor", every
    )


def configuration_table(experiment: Experiment) -> str:
    """The settings in which the arms differ, a row per setting, or per arm of many; folded, what they share."""
    configs = _settings(experiment)
    if not configs:
        return ""
    keys = dict.fromkeys(key for config in configs.values() for key in config)
    differing = [key for key in keys if len({str(config.get(key)) for config in configs.values()}) > 1]
    first = next(iter(configs.values()))
    shared = table(["setting", "all arms"], ([key, _plain(first.get(key))] for key in keys if key not in differing))
    tables = [folded("Settings that all arms share", shared)]
    if differing:
        tables.insert(0, "<h3>Settings in which the arms differ</h3>\n" + _own_settings(configs, differing))
    return "\n".join(tables)


def _own_settings(configs: dict[str, dict], keys: list[str]) -> str:
    if len(configs) <= FEW:
        rows = ([key, *(_plain(config.get(key)) for config in configs.values())] for key in keys)
        return table(["setting", *configs], rows)
    by_arm = ([arm, *(_plain(config.get(key)) for key in keys)] for arm, config in configs.items())
    return table(["arm", *keys], by_arm)


def shared_settings(experiment: Experiment) -> dict[str, str]:
    """The settings that are the same in every arm, as --set takes them; those left empty are left out."""
    first, *others = _settings(experiment).values() or [{}]
    shared = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    return {key: str(value) for key, value in shared.items() if value not in ("", None)}


def environment_table(experiment: Experiment) -> str:
    """Machine and build of the runs: every entry, with all the values that it had."""
    runs = [run for arm_runs in experiment.runs.values() for run in arm_runs]
    keys = dict.fromkeys(key for run in runs for key in run.environment)
    rows = ([key, ", ".join(dict.fromkeys(_plain(run.environment.get(key)) for run in runs))] for key in keys)
    return table(["", ""], rows)


def reduction_table(experiment: Experiment) -> str:
    """Counters of every arm's reductions, over all observed steps and seeds; empty where none was recorded."""
    counters = {arm: _reductions(runs) for arm, runs in experiment.runs.items()}
    rows = [_reduction_row(arm, frame) for arm, frame in counters.items() if not frame.empty]
    if not rows:
        return ""
    head = ["arm", "reductions", "longest (terms)", "overflowed", "adds that changed nothing", "largest partial sum"]
    return "<h3>Reductions</h3>\n" + table(head, rows, numeric=range(1, len(head)))


def _settings(experiment: Experiment) -> dict[str, dict]:
    """The configuration of every arm that has runs, without what names the run."""
    names = {"format_version", "experiment", "arm", "seed"}
    configs = {arm: runs[0].settings for arm, runs in experiment.runs.items() if runs}
    return {arm: {key: config[key] for key in config if key not in names} for arm, config in configs.items()}


def _arm_row(arm: Arm, digits: int) -> list[str]:
    interval = NOTHING if arm.low is None or arm.high is None else f"{arm.low:.{digits}f} to {arm.high:.{digits}f}"
    return [
        arm.name,
        NOTHING if arm.mean is None else f"{arm.mean:.{digits}f}",
        interval,
        f"{arm.diverged} of {arm.seeds}",
        NOTHING if arm.lost_updates is None else percent(arm.lost_updates),
    ]


def _prediction_cell(line: Prediction | None) -> str:
    return NOTHING if line is None else f"{percent(line.predicted)} {ARROW} {percent(line.counted)}"


def _reductions(runs: list[Run]) -> pd.DataFrame:
    frames = [frame for run in runs if not (frame := run.counters("reductions")).empty]
    return pd.concat(frames) if frames else pd.DataFrame()


def _reduction_row(arm: str, frame: pd.DataFrame) -> list[str]:
    return [
        arm,
        f"{frame['reductions'].sum():,}",
        f"{frame['terms'].max():,}",
        f"{frame['overflowed'].sum():,}",
        f"{frame['stagnated'].sum():,}",
        f"{frame['largest_partial_sum'].max():.5g}",
    ]


def _plain(value: object) -> str:
    if value in (None, ""):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
