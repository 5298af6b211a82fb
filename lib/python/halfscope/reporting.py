"""Report of every result: findings with what to type, why, and how sure; as text, HTML, JSON and a table."""

from __future__ import annotations

import html
import json
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from halfscope.results.dataframes import frame

if TYPE_CHECKING:
    import pandas as pd

VERSION = 1  # raised when a key that goes or changes its meaning
KEYS = ("kind", "file", "line", "now", "change", "tried", "evidence")
_COLUMNS = 112


@dataclass(frozen=True)
class Place:
    """A line of source. words: its name in a sentence; the file's name and the line if empty."""

    file: str
    line: int | None = None
    words: str = ""

    def __str__(self) -> str:
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return self.words or (name if self.line is None else f"{name}:{self.line}")


@dataclass(frozen=True)
class Finding:
    """change: what to type; why: what was seen; sure: what was tried."""

    kind: str
    change: str
    why: str = ""
    sure: str = ""
    about: Any = None  # the fault, the cast or the tensor that it is about
    code: str = ""  # the line as it is
    place: Place | None = None

    def __str__(self) -> str:
        where = "" if self.place is None else f"{self.place}: "
        parts = (("Now", self.code), ("Why", self.why), ("Sure", self.sure))
        return "\n".join([f"{where}{self.change}", *(f"  {name}: {text}" for name, text in parts if text)])

    def to_dict(self) -> dict[str, Any]:
        """KEYS; null for a file, a line and a text that are not known."""
        place = self.place or Place("")
        values = (self.kind, place.file or None, place.line, self.code or None, self.change)
        return dict(zip(KEYS, (*values, self.sure or None, self.why or None)))


class Verdict(str):
    """Words of a result; a call of it is refused until 0.2: `verdict` was a method of some results."""

    def __call__(self) -> NoReturn:
        raise TypeError("verdict is the text itself: write .verdict for .verdict()")


class Reported:
    """A result with a report, whose words are its verdict."""

    @property
    def report(self) -> Report:
        raise NotImplementedError

    @property
    def verdict(self) -> Verdict:
        """The report's words: the first line is what to type; then why, and how sure that is."""
        return self.report.verdict

    def _repr_html_(self) -> str:
        """The report for a cell of a notebook, as a terminal shows it."""
        return f'<pre style="white-space: pre-wrap">{html.escape(str(self.report))}</pre>'


@dataclass(frozen=True, eq=False, repr=False)
class Report(Reported):
    """Findings in the order in which they are to be read; `str` of it is the text, in lines for a terminal.

    kind: the function whose result it is. about: extent of the look. text: words in place of those of the findings.
    table: lines that are not to be broken.
    """

    kind: str
    findings: tuple[Finding, ...] = ()
    about: str = ""
    text: str = ""
    table: str = ""

    @property
    def report(self) -> Report:
        """Itself, so that every result has one."""
        return self

    @property
    def verdict(self) -> Verdict:
        return Verdict(self.text or "\n\n".join(map(str, self.findings)))

    def __len__(self) -> int:
        """Findings: none where there is nothing to change."""
        return len(self.findings)

    def __str__(self) -> str:
        return "\n\n".join(filter(None, [wrapped(self.verdict), self.table, wrapped(self.about)]))

    def __repr__(self) -> str:
        name = type(self).__name__ if type(self) is not Report else f"Report of {self.kind}"
        return f"<{name}: {len(self)} finding{'s' * (len(self) != 1)}>"

    def __call__(self) -> NoReturn:
        """Refused until 0.2: `report` was a method of some results."""
        raise TypeError("report is the report itself: write print(result.report) for result.report()")

    def to_dict(self) -> dict[str, Any]:
        """version, report (its kind), verdict (the words), findings (each with KEYS), about and table."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"version": VERSION, "report": self.kind, "verdict": str(self.verdict), "findings": findings,
                "about": self.about, "table": self.table}  # fmt: skip

    def to_json(self) -> str:
        """The dictionary as `python -m halfscope check --json` prints it."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_pandas(self) -> pd.DataFrame:
        """A row per finding, with KEYS as columns. Raises ImportError without pandas."""
        rows = [list(finding.to_dict().values()) for finding in self.findings]
        return frame(rows, columns=list(KEYS)).astype({"line": "Int64"})


def finding_of_verdict(kind: str, verdict: str, about: object) -> Finding:
    """The lines of a verdict: what to type; "Why: ..." and "Not judged: ..."; "Sure: ..."."""
    parts: dict[str, list[str]] = {"": [], "Why": [], "Not judged": [], "Sure": []}
    for line in verdict.splitlines():
        name, _, text = line.strip().partition(": ")
        is_part = line.startswith("  ") and name in parts
        parts[name if is_part else ""].append(text if is_part else line.strip())
    whys = [*parts["Why"], *(f"Not judged: {text}" for text in parts["Not judged"])]
    why = ". ".join(text.rstrip(".") for text in whys)
    return Finding(kind, " ".join(parts[""]), why, "; ".join(parts["Sure"]), about=about)


def wrapped(text: str) -> str:
    """Text in lines for a terminal; all but the first line of a finding is indented already."""
    lines = [
        line if line.startswith("  Now: ") else textwrap.fill(line, _COLUMNS, subsequent_indent="    ")
        for line in text.splitlines()
    ]
    return "\n".join(lines)
