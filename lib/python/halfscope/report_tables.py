"""The tables of a report, as HTML; every cell is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import pandas as pd

from halfscope.results import Arm, Experiment, Run
from halfscope.style import percent

NOTHING = "\N{EN DASH}"


def arm_table(experiment: Experiment) -> str:
    """The arms side by side: metric with interval, every seed, divergence, lost updates."""
    head = ["arm", experiment.metric_label, "95 % interval", "each seed", "diverged", "updates lost"]
    return _table(head, (_arm_row(arm) for arm in experiment.arms), numeric_from=1)


def configuration_table(experiment: Experiment) -> str:
    """One row per setting, one column per arm; seeds share their arm's configuration."""
    configs = _settings(experiment)
    keys = dict.fromkeys(key for config in configs.values() for key in config)
    rows = ([key, *(_plain(config.get(key)) for config in configs.values())] for key in keys)
    return _table(["setting", *configs], rows)


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
    """What the reductions of every arm went through, all observed steps and seeds; empty where none was recorded."""
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


def _arm_row(arm: Arm) -> list[str]:
    interval = NOTHING if arm.low is None or arm.high is None else f"{arm.low:.2f} to {arm.high:.2f}"
    seeds = ", ".join("diverged" if value is None else f"{value:.2f}" for value in arm.values)
    return [
        arm.name,
        NOTHING if arm.mean is None else f"{arm.mean:.2f}",
        interval,
        seeds,
        f"{arm.diverged} of {arm.seeds}",
        NOTHING if arm.lost_updates is None else percent(arm.lost_updates),
    ]


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
