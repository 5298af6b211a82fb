"""The report page: DIR/report.html, one file that holds everything, and its figures as DIR/figures/*.svg."""

from __future__ import annotations

import gc
import multiprocessing
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from halfscope import _core
from halfscope.results.folders import experiment_folders
from halfscope.whole_files import write_whole

if TYPE_CHECKING:
    from halfscope.report.section import Section

# Nothing is loaded, and only the page's own script runs.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'nonce-halfscope'"


def write_report(folder: Path | str, processes: int = 1) -> Path:
    """Draws every experiment in `folder`; returns the page, which does not depend on the number of processes.

    processes: more than one are started anew and import the caller's main module, which must not draw when imported.

    Raises ValueError where there is nothing to draw.
    """
    folder = Path(folder)
    sections = sorted(_sections(experiment_folders(folder), processes))
    (folder / "figures").mkdir(exist_ok=True)
    for section in sections:
        for name, svg in section.figures.items():
            write_whole(folder / "figures" / f"{section.name}_{name}.svg", svg)
    return write_whole(folder / "report.html", report_page(sections))


def _sections(folders: list[Path], processes: int) -> list[Section]:
    """Sections made in several processes: copies of one that has loaded the packages and runs no threads."""
    if len(folders) == 1 or processes == 1:
        return list(map(_section, folders))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["halfscope.plotting.drawings", "halfscope.report.section"])
    largest_first = sorted(folders, key=_bytes, reverse=True)
    with ProcessPoolExecutor(min(processes, len(folders)), context, _collect_rarely) as pool:
        return list(pool.map(_section, largest_first))


def _bytes(folder: Path) -> int:
    """Size of the records, which say how long the drawing takes."""
    paths = (*folder.glob("*.jsonl*"), *folder.glob("*/seed*/*.jsonl"))
    return sum(path.stat().st_size for path in paths)


def _section(folder: Path) -> Section:
    """Imports what draws where it is needed: the process that waits for others needs none of it."""
    from halfscope.plotting.drawings import draw
    from halfscope.report.section import section_of
    from halfscope.results import read_experiment

    experiment = read_experiment(folder)
    return section_of(experiment, draw(experiment))


def _collect_rarely() -> None:
    """Figures are many small objects in circles: looking for garbage among them is a seventh of the time."""
    gc.set_threshold(200_000, 20, 20)


def report_page(sections: Iterable[Section]) -> str:
    """The page as text: its script, its style and the figures inside it, no links to other files and no request."""
    sections = list(sections)
    style = _beside("report.css") + _core.explorer_style()
    parts = "\n".join(section.html for section in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>halfscope: {escape(", ".join(section.name for section in sections))}</title>
<style>
{style}</style>
</head>
<body>
<h1>halfscope report</h1>
<p class="note">Effects of half precision on training, beside the figures of the paper &ldquo;Mixed Precision
Training&rdquo; (Micikevicius et al., ICLR 2018). Every number comes from the records of the runs.</p>
{_summary(sections)}
<details class="words"><summary>The words of this page</summary>
{_core.explorer_legend()}
{_beside("words.html")}</details>
{parts}
<script type="module" nonce="halfscope">
{_core.explorer_script()}
start();
</script>
</body>
</html>
"""


def _summary(sections: list[Section]) -> str:
    """Each experiment with its claim and what came out; empty for a single one, whose section says it all."""
    if len(sections) < 2:
        return ""
    rows = "\n".join(section.summary for section in sections)
    head = "<tr><th>experiment</th><th>the claim</th><th>result here</th><th>does it hold?</th></tr>"
    return f'<div class="scroll"><table class="summary"><thead>{head}</thead><tbody>\n{rows}\n</tbody></table></div>'


def _beside(name: str) -> str:
    """The text of a file of this package."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
