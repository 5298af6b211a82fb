"""Report of every result: findings with what to type, why, and how sure; as text, HTML, JSON and a table."""

from __future__ import annotations

import html
import json
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
    remedy: str = ""  # by its name in the table
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


class Report:
    """Findings in the order in which they are to be read; `str` of it is the text.

    about: what was looked at, and what was not. text: words of the result in place of those of its findings.
    """

    def __init__(
        self, kind: str, findings: Iterable[Finding] = (), about: str = "", *, text: str | None = None
    ) -> None:
        self.kind, self.findings, self.about = kind, tuple(findings), about
        self._text = text

    @property
    def report(self) -> Report:
        """Itself, so that every result has one."""
        return self

    @property
    def verdict(self) -> str:
        """The text: the first line is what to type."""
        return str(self)

    def __len__(self) -> int:
        """Findings: none where there is nothing to change."""
        return len(self.findings)

    def __bool__(self) -> bool:
        """A report is one without findings too."""
        return True

    def __str__(self) -> str:
        if self._text is not None:
            return self._text
        return "\n\n".join(map(wrapped, filter(None, [*map(str, self.findings), self.about])))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.kind}: {len(self)} finding{'s' * (len(self) != 1)}>"

    def _repr_html_(self) -> str:
        """For a cell of a notebook: the text, as a terminal shows it."""
        return f'<pre style="white-space: pre-wrap">{html.escape(str(self))}</pre>'

    def to_dict(self) -> dict[str, Any]:
        """version, report (its kind), verdict (the text), findings (each with KEYS) and about."""
        findings = [finding.to_dict() for finding in self.findings]
        return {"version": VERSION, "report": self.kind, "verdict": str(self), "findings": findings,
                "about": self.about}  # fmt: skip

    def to_json(self) -> str:
        """The dictionary as `halfscope check --json` prints it."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_pandas(self) -> pd.DataFrame:
        """A row per finding, with KEYS as columns. Raises ImportError without pandas."""
        rows = [list(finding.to_dict().values()) for finding in self.findings]
        return frame(rows, columns=list(KEYS)).astype({"line": "Int64"})


def wrapped(text: str) -> str:
    """In lines for a terminal; what follows the first line of a finding is indented already."""
    lines = [
        line if line.startswith("  Now: ") else textwrap.fill(line, _COLUMNS, subsequent_indent="    ")
        for line in text.splitlines()
    ]
    return "\n".join(lines)
