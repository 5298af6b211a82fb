#!/usr/bin/env python3
"""Fails where a sentence begins with a word that sends the reader back: "Of", "Those", "The same of" or "What".
It reads the comments, docstrings, messages and pages of every file that git tracks. Questions, and headings of a page,
may begin with "What".

check_sentences.py ROOT
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import sys
import tokenize
import warnings
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

# Records of runs, files to compare with, and the sentences planted in the test of this check.
SKIPPED = ("experiments/recorded/", "tests/golden/", "tests/python/tools/test_sentences.py", "LICENSE")
HEAD = r"(?:Of|Those|The same of|What)\b(?!-|\()"
# A message may go on from another text with a small letter; a comment begins with either.
FIRST = re.compile(rf"\W*(?i:{HEAD})")
FIRST_OF_MESSAGE = re.compile(HEAD)
LATER = re.compile(rf"(?<=[.!?]) +{HEAD}")
POINT = re.compile(r"(?:[-*>]|#+|\d+\.) ")
SENTENCE_END = re.compile(r"[.!?](?=\s|$)")


class Kind(Enum):
    COMMENT = "comment"  # or docstring
    MESSAGE = "message"
    PAGE = "page"


class Prose(NamedTuple):
    """A comment, message or paragraph, and the line of its first word."""

    line: int
    text: str
    kind: Kind = Kind.COMMENT


class Comment(NamedTuple):
    line: int
    column: int
    text: str
    alone: bool  # nothing but white space before it


def joined(comments: Iterable[Comment]) -> Iterator[Prose]:
    """Comments of successive lines as one, up to an empty one or the next point of a list."""
    first, last, text = 0, Comment(-1, 0, "", True), ""
    for comment in comments:
        follows = comment.line == last.line + 1 and comment.alone and comment.column == last.column
        if follows and comment.text and not comment.text.startswith(("- ", "* ", "@", "\\")):
            text = f"{text} {comment.text}"
        else:
            yield Prose(first, text)
            first, text = comment.line, comment.text
        last = comment
    yield Prose(first, text)


def paragraphs(text: str, line: int, kind: Kind) -> Iterator[Prose]:
    """Paragraphs of a docstring or page: set apart by an empty line, a heading, a point of a list or a table's cell."""
    first, words = line, ""
    for number, row in enumerate(text.splitlines(), line):
        cells = row.strip().strip("|").split("|") if row.lstrip().startswith("|") else [row]
        for cell in (cell.strip() for cell in cells):
            if not cell or len(cells) > 1 or POINT.match(cell):
                yield Prose(first, words, kind)
                first, words = number, POINT.sub("", cell)
            else:
                first, words = (first, f"{words} {cell}") if words else (number, cell)
    yield Prose(first, words, kind)


# A raw string, a string, a character or template, a comment of several lines, a comment of one.
C_TOKEN = re.compile(
    r'R"(?P<mark>[^()\s]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<string>(?:[^"\\\n]|\\.)*)"'
    r"|(?<![\w])'(?:[^'\\\n]|\\.)+'|`(?:[^`\\]|\\.)*`|/\*(?P<block>.*?)\*/|//[/!]?<?(?P<comment>[^\n]*)",
    re.DOTALL,
)


def c_prose(source: str) -> Iterator[Prose]:
    comments: list[Comment] = []
    message, message_line, end, line = "", 0, 0, 1
    for token in C_TOKEN.finditer(source):
        between = source[end : token.start()]
        line += between.count("\n")
        end = token.end()
        if token["comment"] is not None:
            start = source.rfind("\n", 0, token.start()) + 1
            before = source[start : token.start()]
            comments.append(Comment(line, len(before), token["comment"].strip(), not before.strip()))
        elif token["block"] is not None:
            yield from paragraphs(re.sub(r"^[ \t]*\*+", "", token["block"], flags=re.MULTILINE), line, Kind.COMMENT)
        else:
            text = token["raw"] or (token["string"] or "").replace("\\n", " ").replace('\\"', '"')
            if between.strip() or not message:  # literals side by side are one message
                yield Prose(message_line, message, Kind.MESSAGE)
                message, message_line = "", line
            message += text
        line += token[0].count("\n")
    yield Prose(message_line, message, Kind.MESSAGE)
    yield from joined(comments)


def python_prose(source: str) -> Iterator[Prose]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an escape in a planted source is no business of this check
        tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            texts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield Prose(node.lineno, "".join(texts), Kind.MESSAGE)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            if id(node) in docstrings:
                yield from paragraphs(node.value, node.lineno, Kind.COMMENT)
            else:
                yield Prose(node.lineno, node.value, Kind.MESSAGE)
    yield from joined(
        Comment(*token.start, token.string.lstrip("#").strip(), not token.line[: token.start[1]].strip())
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith("#!")
    )


def hash_prose(source: str) -> Iterator[Prose]:
    """Comments and quoted text of a shell script, a CMake list, a TOML or YAML file."""
    comments = []
    for number, row in enumerate(source.splitlines(), 1):
        mark = re.search(r"(?:^|\s)#+(?=\s|$)", row)
        if mark:
            comments.append(Comment(number, mark.end(), row[mark.end() :].strip(), not row[: mark.start()].strip()))
        for text in re.findall(r'"([^"]*)"', row[: mark.start()] if mark else row):
            yield Prose(number, text, Kind.MESSAGE)
    yield from joined(comments)


FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^    .*$|<!--.*?-->", re.MULTILINE)


def page_prose(source: str) -> Iterator[Prose]:
    """Paragraphs of a page of documentation, without its blocks of code and of output."""
    unfenced = FENCED.sub(lambda block: "\n" * block[0].count("\n"), source)
    return paragraphs(INDENTED.sub("", unfenced), 1, Kind.PAGE)


def notebook_prose(source: str) -> Iterator[Prose]:
    for cell in json.loads(source)["cells"]:
        text = "".join(cell["source"])
        read = python_prose if cell["cell_type"] == "code" and not text.startswith(("%", "!")) else page_prose
        yield from (prose._replace(line=1) for prose in read(text))


READERS: dict[str, Callable[[str], Iterator[Prose]]] = {
    **dict.fromkeys((".cpp", ".hpp", ".cu", ".cuh", ".js", ".in"), c_prose),
    **dict.fromkeys((".sh", ".cmake", ".toml", ".yml", ".yaml", ".txt", ".cff"), hash_prose),
    ".py": python_prose,
    ".md": page_prose,
    ".ipynb": notebook_prose,
}


def one_line(prose: Prose) -> str:
    return " ".join(prose.text.split())


def looks_back(prose: Prose) -> bool:
    text = one_line(prose)
    first = (FIRST_OF_MESSAGE if prose.kind is Kind.MESSAGE else FIRST).match(text)
    for match in ([first] if first else []) + list(LATER.finditer(text)):
        end = SENTENCE_END.search(text, match.end())
        is_question = end is not None and end[0] == "?"
        is_heading = prose.kind is Kind.PAGE and end is None
        if not (match[0].lower().endswith("what") and (is_question or is_heading)):
            return True
    return False


def reader_of(path: str, source: str) -> Callable[[str], Iterator[Prose]] | None:
    if Path(path).suffix:
        return READERS.get(Path(path).suffix)
    shebang = source.split("\n", 1)[0]
    return python_prose if "python" in shebang else hash_prose if shebang.startswith("#!") else None


def check_file(root: Path, path: str) -> list[str]:
    file = root / path
    if not file.is_file() or Path(path).suffix not in {"", *READERS}:
        return []
    source = file.read_text(encoding="utf-8")
    read = reader_of(path, source)
    found = read(source) if read else ()
    return [f"{path}:{prose.line}: {one_line(prose)[:90]}" for prose in found if looks_back(prose)]


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(arguments[0])
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=True).stdout
    paths = [path for path in listed.splitlines() if not path.startswith(SKIPPED)]
    problems = [problem for path in paths for problem in check_file(root, path)]
    begin = "sentence begins" if len(problems) == 1 else "sentences begin"
    print("\n".join([*problems, f"{len(problems)} {begin} with Of, Those, The same of or What"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
