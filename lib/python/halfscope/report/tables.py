"""The tables of a report, as HTML; every cell is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import pandas as pd

from halfscope.plotting.predictions import predicted_arms, predictions_in_words
from halfscope.plotting.style import FEW, percent
from halfscope.results import Arm, Experiment, Prediction, Run
from halfscope.results.formats import label

NOTHING = "\N{EN DASH}"
ARROW = "\N{RIGHTWARDS ARROW}"
# Columns of the arm table that only newer results hold; the shares are of the non-zero gradient elements.
EXTRA_COLUMNS = {"flushed": "gradients flushed", "overflow": "gradients overflowing", "skipped": "steps skipped"}

GRADIENT_NOTE = (
    "Gradients: share of the non-zero elements, both of activations and of weights, over all observed steps. "
    "FP32 arms flush nothing: theirs is the share that a cast to {} would flush."
)


def arm_table(experiment: Experiment) -> str:
    """The arms side by side: metric with interval, every seed, divergence, lost updates; gradients where counted."""
    better = " (lower is better)" if experiment.lower_is_better else ""
    head = ["arm", experiment.metric_label + better, "95 % interval", "each seed", "diverged", "updates lost"]
    extra = {
        name: [_extra_cell(arm, name) for arm in experiment.arms]
        for name in EXTRA_COLUMNS
        if any(getattr(arm, name) is not None for arm in experiment.arms)
    }
    rows = (
        [*_arm_row(arm, experiment.digits), *(cells[place] for cells in extra.values())]
        for place, arm in enumerate(experiment.arms)
    )
    note = f'\n<p class="note">{GRADIENT_NOTE.format(_formats(experiment))}</p>' if "flushed" in extra else ""
    return _table([*head, *(EXTRA_COLUMNS[name] for name in extra)], rows, numeric_from=1) + note


def published_table(experiment: Experiment) -> str:
    """Rows of a table of the paper's with ours beside it, and a heading for the arms; empty without such a table."""
    rows = experiment.summary.get("published") or ()
    if not rows:
        return ""
    head = ["", "FP32", "mixed", "difference", "FP32's seeds differ by"]
    head += ["paper's FP32", "paper's mixed", "difference"]
    return (
        "<h3>The paper&rsquo;s table beside ours</h3>\n"
        + _table(head, (_published_row(row, experiment.digits) for row in rows), numeric_from=1)
        + "\n<h3>Arms</h3>"
    )


def _published_row(row: dict, digits: int) -> list[str]:
    def cell(value: float | None, sign: str = "") -> str:
        return NOTHING if value is None else f"{value:{sign}.{digits}f}"

    def pair(baseline: float | None, arm: float | None) -> list[str]:
        difference = None if baseline is None or arm is None else arm - baseline
        return [cell(baseline), cell(arm), cell(difference, "+")]

    ours, papers = pair(row["baseline"], row["arm"]), pair(row["paper_baseline"], row["paper_arm"])
    return [row["row"], *ours, cell(row["spread"]), *papers]


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
    table = _table(["tensor, nearest the loss first", "role", "elements", *arms], rows, numeric_from=2)
    words = escape(predictions_in_words(experiment).replace("\n", " "))
    return (
        f"<h3>Flushed at the first step: predicted {ARROW} counted</h3>\n<p>{words}</p>\n"
        f"<details><summary>Every tensor</summary>\n{table}\n</details>"
    )


def configuration_table(experiment: Experiment) -> str:
    """The settings in which the arms differ, a row per setting, or per arm of many; folded, what they share."""
    configs = _settings(experiment)
    if not configs:
        return ""
    keys = dict.fromkeys(key for config in configs.values() for key in config)
    differing = [key for key in keys if len({str(config.get(key)) for config in configs.values()}) > 1]
    first = next(iter(configs.values()))
    shared = _table(["setting", "all arms"], ([key, _plain(first.get(key))] for key in keys if key not in differing))
    tables = [folded("Settings that all arms share", shared)]
    if differing:
        tables.insert(0, "<h3>Settings in which the arms differ</h3>\n" + _own_settings(configs, differing))
    return "\n".join(tables)


def _own_settings(configs: dict[str, dict], keys: list[str]) -> str:
    if len(configs) <= FEW:
        rows = ([key, *(_plain(config.get(key)) for config in configs.values())] for key in keys)
        return _table(["setting", *configs], rows)
    by_arm = ([arm, *(_plain(config.get(key)) for key in keys)] for arm, config in configs.items())
    return _table(["arm", *keys], by_arm)


def folded(heading: str, content: str) -> str:
    """`content` behind a heading that opens it."""
    return f"<details><summary>{escape(heading)}</summary>\n{content}\n</details>"


def shared_settings(experiment: Experiment) -> dict[str, str]:
    """The settings that are the same in every arm, as --set takes them; those left empty are left out."""
    first, *others = _settings(experiment).values() or [{}]
    shared = {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}
    return {key: str(value) for key, value in shared.items() if value not in ("", None)}


def environment_table(experiment: Experiment) -> str:
    """Where the runs were made: every setting, with all the values that it had."""
    runs = [run for arm_runs in experiment.runs.values() for run in arm_runs]
    keys = dict.fromkeys(key for run in runs for key in run.environment)
    rows = ([key, ", ".join(dict.fromkeys(_plain(run.environment.get(key)) for run in runs))] for key in keys)
    return _table(["", ""], rows)


def reduction_table(experiment: Experiment) -> str:
    """Counters of every arm's reductions, over all observed steps and seeds; empty where none was recorded."""
    counters = {arm: _reductions(runs) for arm, runs in experiment.runs.items()}
    rows = [_reduction_row(arm, frame) for arm, frame in counters.items() if not frame.empty]
    if not rows:
        return ""
    head = ["arm", "reductions", "longest (terms)", "overflowed", "adds that changed nothing", "largest partial sum"]
    return "<h3>Reductions</h3>\n" + _table(head, rows, numeric_from=1)


def _settings(experiment: Experiment) -> dict[str, dict]:
    """The configuration of every arm that has runs, without what names the run."""
    names = {"format_version", "experiment", "arm", "seed"}
    configs = {arm: runs[0].config for arm, runs in experiment.runs.items() if runs}
    return {arm: {key: config[key] for key in config if key not in names} for arm, config in configs.items()}


def _arm_row(arm: Arm, digits: int) -> list[str]:
    interval = NOTHING if arm.low is None or arm.high is None else f"{arm.low:.{digits}f} to {arm.high:.{digits}f}"
    seeds = ", ".join("diverged" if value is None else f"{value:.{digits}f}" for value in arm.values)
    return [
        arm.name,
        NOTHING if arm.mean is None else f"{arm.mean:.{digits}f}",
        interval,
        seeds,
        f"{arm.diverged} of {arm.seeds}",
        NOTHING if arm.lost_updates is None else percent(arm.lost_updates),
    ]


def _extra_cell(arm: Arm, name: str) -> str:
    value = getattr(arm, name)
    return NOTHING if value is None else f"{value:g}" if name == "skipped" else percent(value)


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


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numeric_from: int | None = None) -> str:
    """Columns from `numeric_from` on are set to the right."""

    def row(cells: Sequence[str], tag: str) -> str:
        kinds = [" class=number" if numeric_from is not None and i >= numeric_from else "" for i in range(len(cells))]
        return "<tr>" + "".join(f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(cells, kinds)) + "</tr>"

    top = f"<thead>{row(head, 'th')}</thead>" if any(head) else ""
    body = "\n".join(row(cells, "td") for cells in rows)
    return f'<div class="scroll"><table>{top}<tbody>\n{body}\n</tbody></table></div>'
