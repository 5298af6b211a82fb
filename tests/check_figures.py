#!/usr/bin/env python3
"""Fails for a figure with a unit that was typed into a page: a time, a size, a rate, a ratio, a share, a count.

Such a figure stands in a generated part or value (tools/docs), in code, in output that the tests compare, or in a
sentence that cites a publication. Limits and definitions are in tests/figures.txt, a line
for each: page, figure, source file and the line of it that has the number:

    docs/guides/check.md | 5 % on | lib/python/halfscope/torch/check/updates.py | MOST_LOST = 0.05

A page of * is every page. The check fails too where that line is gone or has another number, and for a line of the
list whose figure no page has any more.

check_figures.py ROOT
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LIST = "tests/figures.txt"
NOT_PROSE = (
    re.compile(r"<!-- generated: .*?<!-- end of generated -->", re.DOTALL),
    re.compile(r"<!-- value: .*?<!-- end -->"),
    re.compile(r"<!-- compared: .*?<!-- end of compared -->", re.DOTALL),
    re.compile(r"^ {4,}(?![-*|\d]).*$", re.MULTILINE),  # code that is indented
    re.compile(r"`(?:[^`\n]|\n(?!\s*\n))+`"),
    re.compile(r"(?<=\])\([^)\s]+\)"),  # addresses of links
)
FENCE = re.compile(r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^ *```(?P<language>\w*)\n.*?^ *```$", re.DOTALL | re.MULTILINE)
COMPARED = re.compile(r"output$|compared: ")  # with what the block before prints, or by a test
WORDS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "half an": 0.5, "a quarter of an": 0.25,
}  # fmt: skip
NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?"
TIME = r"(?:ms|us|µs|ns|s|min|seconds?|minutes?|hours?|days?)"
UNIT = rf"(?:%|percent|{TIME}|[KMGT]i?B(?:/s)?|[MGT]/s|[GT]FLOP/s|times|points"
THINGS = "trainings|tests|networks|experiments|claims|tasks|scalers|models|rules|commands|roundings"
UNIT += rf"|(?:(?!(?:of|the|with|in|on|and) )\w+ )?(?:{THINGS}))"
MANY = "seven|eight|nine|ten|eleven|twelve|fifteen|sixteen|eighteen|twenty|thirty"  # fewer may be a definition
FIGURE = re.compile(
    rf"(?<![\w^./-])(?:{NUMBER})(?: ?(?:to|of|and|or|\.\.) ?{NUMBER})? ?{UNIT}(?![\w/])"
    rf"|\b(?<!factor of )\d[\d,]* of (?:its |the |every )?\d[\d,]*\b"
    rf"|\b(?:{MANY}) (?:{THINGS})\b"
    rf"|\b(?:{'|'.join(WORDS)}) (?:seconds?|minutes?|hours?|days?|percent)\b",
    re.IGNORECASE,
)
YEAR = r"\b[A-Z]\w+,? \(?(?:19|20)\d\d\b"
CITATION = re.compile(
    rf"{YEAR}|\bet al\.|\b\d{{4}}\.\d{{5}}\b|\[@\w+\]|\b(?:Fig\.|Figure|Table|[Ss]ection) \d|[\w-]+/[\w-]+ #\d+"
)
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`*\[(])")
PARAGRAPH = re.compile(r"\n\s*\n|\n(?= *(?:[-*>]|\d+\.|#+|\|) )")


class Figure(NamedTuple):
    page: str
    line: int
    sentence: str  # on one line
    start: int  # in the sentence
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}: {self.sentence[:90]}"


class Definition(NamedTuple):
    """A figure that is no measurement, and the line of code that has it."""

    page: str
    figure: str
    source: str
    code: str

    def covers(self, figure: Figure) -> bool:
        return self.page in ("*", figure.page) and figure.sentence.startswith(self.figure, figure.start)

    def __str__(self) -> str:
        return " | ".join(self)


def without_code(fence: re.Match[str]) -> str:
    """A fenced block as white space, but for comments of commands and output that no test compares."""
    text = fence[0].replace("`", " ")
    if fence["language"] == "text" and not COMPARED.match(fence["note"] or ""):
        return text
    if fence["language"] != "sh":
        return re.sub(r"[^\n]", " ", text)
    return re.sub(r"^.*?(?=  # |$)", "", text, flags=re.MULTILINE)


def blanked(text: str) -> str:
    """The prose of a page; all else is white space, so that lines stay where they are."""
    text = FENCE.sub(without_code, text)
    for pattern in NOT_PROSE:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Each sentence or row of a table, on one line, with the number of its first line."""
    place = 0
    for paragraph in PARAGRAPH.split(text):
        is_row = paragraph.lstrip().startswith("|")
        for sentence in [paragraph] if is_row else SENTENCE_END.split(paragraph):
            place = text.index(sentence, place)
            lead = len(sentence) - len(sentence.lstrip())
            yield text.count("\n", 0, place + lead) + 1, " ".join(sentence.split())
            place += len(sentence)


def figures(page: str, text: str) -> Iterator[Figure]:
    """Figures of the prose that no citation stands beside."""
    for line, sentence in sentences(blanked(text)):
        if not CITATION.search(sentence):
            for match in FIGURE.finditer(sentence):
                yield Figure(page, line, sentence, match.start(), match[0])


def first_number(figure: str) -> float:
    words = re.match("|".join(WORDS), figure.lower())
    return WORDS[words[0]] if words else float(re.match(NUMBER, figure)[0].replace(",", ""))


def has_number_of(code: str, figure: str) -> bool:
    """Whether a line of code has a figure's number: as it stands, as a share, in seconds, its inverse or quantile."""
    wanted = first_number(figure)
    same = [wanted, wanted / 100, 60 * wanted, 0.5 + wanted / 200, 1 - wanted / 200, *([1 / wanted] if wanted else [])]
    numbers = map(float, re.findall(r"(?<![\w.])\d+(?:\.\d+)?", code))
    return any(abs(number - other) <= 1e-9 * max(1, other) for number in numbers for other in same)


def definitions(root: Path) -> list[Definition]:
    path = root / LIST
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [
        Definition(*(part.strip() for part in line.split(" | ", 3)))
        for line in lines
        if line.strip() and not line.startswith("#")
    ]


def wrong_definition(root: Path, definition: Definition) -> str | None:
    source = root / definition.source
    if not source.is_file():
        return f"{LIST}: {definition}: no such file"
    if " ".join(definition.code.split()) not in " ".join(source.read_text(encoding="utf-8").split()):
        return f"{LIST}: {definition}: the file has no such line"
    if not has_number_of(definition.code, definition.figure):
        return f"{LIST}: {definition}: the line has another number"
    return None


def wrong_comparisons(root: Path, page: str, text: str) -> Iterator[str]:
    """Parts that name a test which does not name the page."""
    for test in re.findall(r"<!-- compared: (\S+) -->", text):
        if not (root / test).is_file() or Path(page).name not in (root / test).read_text(encoding="utf-8"):
            yield f"{page}: compared: {test}: no such file, or it does not name the page"


def problems(root: Path, paths: list[str]) -> Iterator[str]:
    known = definitions(root)
    used = set()
    for path in paths:
        text = (root / path).read_text(encoding="utf-8")
        yield from wrong_comparisons(root, path, text)
        for figure in figures(path, text):
            covering = [definition for definition in known if definition.covers(figure)]
            used.update(covering)
            if not covering:
                yield str(figure)
    for definition in known:
        problem = wrong_definition(root, definition)
        if problem or definition not in used:
            yield problem or f"{LIST}: {definition}: no page has this figure"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(arguments[0])
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=True).stdout
    found = list(problems(root, [path for path in listed.splitlines() if (root / path).is_file()]))
    print("\n".join([*found, f"{len(found)} {'figure' if len(found) == 1 else 'figures'} typed by hand"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
