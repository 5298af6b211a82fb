"""Findings of an experiment beyond its arms as HTML: tables that the program has filled, drawn as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from halfscope.report.markup import folded, table
from halfscope.results import Experiment

NUMBER = re.compile(r"[-+<]?\s*[\d.]|-|$")
LONG = 25  # rows beyond which a table is folded


def finding_tables(experiment: Experiment) -> str:
    """Every section of every finding: heading, lines, table, note; empty without findings."""
    findings = experiment.summary.get("findings") or ()
    return "\n".join(_section(section) for finding in findings for section in finding["sections"])


def _section(section: dict) -> str:
    heading, columns, rows, note = (section[key] for key in ("heading", "columns", "rows", "note"))
    lines = "".join(f"<li>{escape(line)}</li>" for line in section.get("lines", ()))
    drawn = table(columns, rows, numeric=_numeric(rows)) if rows else ""
    parts = [
        f"<h3>{escape(heading)}</h3>" if heading else "",
        f"<ul>{lines}</ul>" if lines else "",
        folded(f"All {len(rows)} rows", drawn) if len(rows) > LONG else drawn,
        f'<p class="note">{escape(note)}</p>' if note else "",
    ]
    return "\n".join(part for part in parts if part)


def _numeric(rows: Sequence[Sequence[str]]) -> set[int]:
    """Columns whose cells are numbers, or dashes in place of one."""
    columns = enumerate(zip(*rows))
    return {place for place, cells in columns if all(NUMBER.match(cell) for cell in cells)}
