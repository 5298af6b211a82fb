"""Reads the fenced blocks of README.md and docs/, with the comment directly above each.

<!-- not run: REASON -->   the block stays unchecked, and REASON says why
<!-- torch -->             Python or commands that need PyTorch: tools/test --torch runs them
<!-- torch 2.4 -->         the same, of this version or a newer one
<!-- exit status N -->     of the block's last command; also "torch, exit status N"
<!-- output -->            text: the standard output of the block before it
<!-- compared: TEST -->    text: output that another test compares
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from recording.pages import pages

LANGUAGES = ("sh", "python", "cpp", "cmake", "text")
BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^```(?P<language>[^\n]*)\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int  # line of its fence, from 1
    language: str
    code: str
    note: str  # text of the comment above; empty without one

    @property
    def reason(self) -> str | None:
        """The reason for which it is not run; None if it is."""
        return self.note.removeprefix("not run: ") if self.note.startswith("not run: ") else None

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def needs_torch(self) -> bool:
        return re.match(r"torch\b", self.note) is not None

    @property
    def torch_version(self) -> tuple[int, ...]:
        """The first that runs it; empty where each does."""
        version = re.match(r"torch (\d+)\.(\d+)", self.note)
        return tuple(map(int, version.groups())) if version else ()

    @property
    def exit_status(self) -> int:
        status = re.search(r"exit status (\d+)$", self.note)
        return int(status[1]) if status else 0


def read_blocks(page: Path) -> list[Block]:
    """The blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            1 + text.count("\n", 0, match.start("language")),
            *match.group("language", "code"),
            match["note"] or "",
        )
        for match in BLOCK.finditer(text)
    ]


def all_blocks() -> list[Block]:
    return [block for page in pages() for block in read_blocks(page)]


def prose(page: Path) -> str:
    """A page without its blocks."""
    return BLOCK.sub("", page.read_text(encoding="utf-8"))


def shown(code: str) -> list[str]:
    """The output that the comments behind print() promise."""
    return re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
