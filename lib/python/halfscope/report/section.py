"""The section of one experiment in a report: its claim, its explorer, its figures and tables, as HTML."""

from __future__ import annotations

import shlex
from html import escape
from math import inf
from typing import NamedTuple

from halfscope.plotting.drawings import Drawing
from halfscope.report.explorer import explorer_section
from halfscope.report.findings import finding_tables
from halfscope.report.markup import folded
from halfscope.report.summary import summary_row
from halfscope.report.tables import (
    arm_table,
    configuration_table,
    environment_table,
    prediction_table,
    reduction_table,
    shared_settings,
)
from halfscope.results import Experiment


class Section(NamedTuple):
    """Section of a page for one experiment; sections sort in the paper's order, others behind it, by name."""

    place: float
    name: str
    summary: str  # a row of the table that opens the page
    html: str
    figures: dict[str, bytes]  # SVG by name


def section_of(experiment: Experiment, drawings: list[Drawing]) -> Section:
    return Section(
        place=experiment.summary.get("place") or inf,
        name=experiment.name,
        summary=summary_row(experiment),
        html=_html(experiment, drawings),
        figures={drawing.name: drawing.svg for drawing in drawings},
    )


def _html(experiment: Experiment, drawings: list[Drawing]) -> str:
    parts = [
        f'<section id="{escape(experiment.name)}">',
        f"<h2>{escape(experiment.name)}</h2>",
        f"<p>{escape(experiment.title)}</p>",
        _verdict(experiment),
        _paper(experiment),
        arm_table(experiment),
        finding_tables(experiment),
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
    if any("pytorch" in run.environment for runs in experiment.runs.values() for run in runs):
        return ""
    return f"<h3>How to repeat it</h3>\n<pre>{escape(_command(experiment))}</pre>"


def _unfinished(experiment: Experiment) -> str:
    if not experiment.unfinished:
        return ""
    return f'<p class="note">Not finished, so not drawn: {escape("; ".join(experiment.unfinished))}.</p>'


def _figure(drawing: Drawing) -> str:
    return f"<figure><img alt=\"{escape(drawing.description)}\" src='{_address(drawing.svg)}'></figure>"


def _address(svg: bytes) -> str:
    """The picture as an address between apostrophes; as text it is a fourth shorter than in base64."""
    text = " ".join(svg.decode().split("\n"))
    for letter, escaped in (("%", "%25"), ("#", "%23"), ("'", "%27"), ("&", "&amp;")):
        text = text.replace(letter, escaped)
    return f"data:image/svg+xml,{text}"


def _command(experiment: Experiment) -> str:
    """Settings that the arms share come from the command line; the others are the experiment's own."""
    arms = ",".join(arm.name for arm in experiment.arms)
    seeds = max((arm.seeds for arm in experiment.arms), default=1)
    words = [f"halfscope run {experiment.name} --arms {arms} --seeds {seeds}"]
    words += [f"--set {shlex.quote(f'{key}={value}')}" for key, value in shared_settings(experiment).items()]
    return " \\\n    ".join(words)
