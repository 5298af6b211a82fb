"""docs/llms.txt: the pages of docs/ for a program that reads them, a line each, in the order of the site."""

from __future__ import annotations

import re
from pathlib import Path

PATH = "docs/llms.txt"
_NO_PROSE = ("#", "|", "!", "- ", "1. ", "* ", "<")
_SENTENCE_END = re.compile(r"(?<!Fig\.)(?<!al\.)(?<=[.?!])\s")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def llms_text(root: Path) -> str:
    """Title, what halfscope is, and by section of mkdocs.yml a line per page: title, link, first sentence."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    lines = ["# halfscope", "", f"> {first_sentence(readme)}", ""]
    lines += ["Links are to the Markdown sources. Start with SKILL.md: which call answers which question.", ""]
    nav = (root / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    for title, pages in re.findall(r"^  - (\w+):\n((?:      .*\n?)+)", nav, re.MULTILINE):
        rows = [_row(root, page) for page in re.findall(r"- ([\w./-]+\.md)$", pages, re.MULTILINE)]
        rows = [row for row in rows if row]
        lines += [f"## {title}", "", *rows, ""] if rows else []
    return "\n".join(lines)


def _row(root: Path, page: str) -> str:
    """Empty for a page that is not in docs/, such as the reference made from docstrings."""
    path = root / "docs" / page
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8")
    title = re.search(r"^# (.*)$", text, re.MULTILINE)
    sentence = first_sentence(text)
    return f"- [{title[1] if title else page}]({page}){': ' if sentence else ''}{sentence}"


def first_sentence(page: str) -> str:
    """The first sentence of a page's first paragraph, without links and signs of Markdown."""
    text = re.sub(r"^---\n.*?^---\n|<!--.*?-->|^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)
    parts = [part.strip() for part in text.split("\n\n")]
    paragraph = next((part for part in parts if part and not part.startswith(_NO_PROSE)), "")
    words = " ".join(_LINK.sub(r"\1", paragraph).split()).replace("**", "")
    return _SENTENCE_END.split(words)[0].rstrip(":")
