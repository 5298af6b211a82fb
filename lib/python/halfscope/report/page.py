"""The report page: DIR/report.html, one file that holds everything, and its figures as DIR/figures/*.svg."""

from __future__ import annotations

import base64
import shlex
from html import escape
from math import inf
from pathlib import Path

from halfscope import _core
from halfscope.plotting.drawings import Drawing, draw
from halfscope.report.explorer import explorer_section
from halfscope.report.summary import summary_table
from halfscope.report.tables import (
    arm_table,
    configuration_table,
    environment_table,
    folded,
    prediction_table,
    reduction_table,
    shared_settings,
)
from halfscope.results import Experiment, read_results
from halfscope.results.arms import WATCHED
from halfscope.whole_files import write_whole

# Nothing is loaded, and only the page's own script runs.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-halfscope'"


def write_report(folder: Path | str) -> Path:
    """Draws every experiment in `folder`; returns the page. Raises ValueError where there is nothing to draw."""
    folder = Path(folder)
    drawn = [(experiment, draw(experiment)) for experiment in sorted(read_results(folder), key=_place)]
    (folder / "figures").mkdir(exist_ok=True)
    for experiment, drawings in drawn:
        for drawing in drawings:
            write_whole(folder / "figures" / f"{experiment.name}_{drawing.name}.svg", drawing.svg)
    return write_whole(folder / "report.html", report_page(drawn))


def _place(experiment: Experiment) -> tuple[float, str]:
    """The paper's order; others behind it, by name."""
    return experiment.summary.get("place") or inf, experiment.name


def report_page(drawn: list[tuple[Experiment, list[Drawing]]]) -> str:
    """The page as text: its script, its style and the figures inside it, no links to other files and no request."""
    style = _beside("report.css") + _core.explorer_style()
    sections = "\n".join(_section(experiment, drawings) for experiment, drawings in drawn)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>halfscope: {escape(", ".join(e.name for e, _ in drawn))}</title>
<style>
{style}</style>
</head>
<body>
<h1>halfscope report</h1>
<p class="note">Effects of half precision on training, beside the figures of the paper &ldquo;Mixed Precision
Training&rdquo; (Micikevicius et al., ICLR 2018). Every number comes from the records of the runs.</p>
{summary_table([experiment for experiment, _ in drawn])}
<details class="words"><summary>The words of this page</summary>
{_core.explorer_legend()}
{_beside("words.html")}</details>
{sections}
<script type="module" nonce="halfscope">
{_core.explorer_script()}
start();
</script>
</body>
</html>
"""


def _beside(name: str) -> str:
    """The text of a file of this package."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _section(experiment: Experiment, drawings: list[Drawing]) -> str:
    parts = [
        f'<section id="{escape(experiment.name)}">',
        f"<h2>{escape(experiment.name)}</h2>",
        f"<p>{escape(experiment.title)}</p>",
        _verdict(experiment),
        _paper(experiment),
        arm_table(experiment),
        explorer_section(experiment),
        _unfinished(experiment),
        *map(_figure, drawings),
        prediction_table(experiment),
        reduction_table(experiment),
        configuration_table(experiment),
        folded("Environment", environment_table(experiment)),
        _repetition(experiment),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _verdict(experiment: Experiment) -> str:
    """The verdict, or why there is none, and the settings of the runs that are not the experiment's own."""
    summary = experiment.summary
    parts = [f'<p class="verdict">{escape(summary["verdict"])}</p>'] if summary["verdict"] else []
    if summary.get("verdict_withheld"):
        parts.append(f'<p class="note">No verdict: {escape(summary["verdict_withheld"])}.</p>')
    differences = [
        f"{entry['key']} = {entry['found']} (own: {entry['own']})"
        + (f" in {', '.join(entry['arms'])}" if entry["arms"] else "")
        for entry in summary.get("settings_differ", ())
    ]
    if differences:
        parts.append(
            f'<p class="note">Settings that are not the experiment&rsquo;s own: {escape("; ".join(differences))}.</p>'
        )
    return "\n".join(parts)


def _paper(experiment: Experiment) -> str:
    paper = experiment.summary["paper"]
    return f'<p class="paper"><b>The paper:</b> {escape(paper)}</p>' if paper else ""


def _repetition(experiment: Experiment) -> str:
    """Nothing of a training of PyTorch's, which no command of ours repeats."""
    if [arm.name for arm in experiment.arms] == [WATCHED]:
        return ""
    return f"<h3>How to repeat it</h3>\n<pre>{escape(_command(experiment))}</pre>"


def _unfinished(experiment: Experiment) -> str:
    if not experiment.unfinished:
        return ""
    return f'<p class="note">Not finished, so not drawn: {escape("; ".join(experiment.unfinished))}.</p>'


def _figure(drawing: Drawing) -> str:
    data = base64.b64encode(drawing.svg).decode("ascii")
    return f'<figure><img alt="{escape(drawing.description)}" src="data:image/svg+xml;base64,{data}"></figure>'


def _command(experiment: Experiment) -> str:
    """Settings that the arms share come from the command line; the others are the experiment's own."""
    arms = ",".join(arm.name for arm in experiment.arms)
    seeds = max((arm.seeds for arm in experiment.arms), default=1)
    words = [f"halfscope run {experiment.name} --arms {arms} --seeds {seeds}"]
    words += [f"--set {shlex.quote(f'{key}={value}')}" for key, value in shared_settings(experiment).items()]
    return " \\\n    ".join(words)
