"""The check of a built site's links, on planted faults. `tools/test --all` builds the site and follows its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from copied_tree import ROOT

GOOD = """<!doctype html><link rel="stylesheet" href="site.css"><link rel="canonical" href="https://example.org/">
<h1 id="top-of-it">One</h1> <a href="two/#second">two</a> <a href="#top-of-it">up</a> <a href="https://example.org">out</a>
"""


def check(folder: Path, page: str) -> tuple[int, list[str]]:
    (folder / "two").mkdir(exist_ok=True)
    (folder / "site.css").write_text("")
    (folder / "two/index.html").write_text('<h2 id="second">Second</h2> <a href="..">one</a>')
    (folder / "index.html").write_text(page)
    done = subprocess.run([sys.executable, ROOT / "tools/site_files/links.py", folder], capture_output=True, text=True)
    return done.returncode, done.stdout.splitlines()


def test_good_links_pass(tmp_path: Path) -> None:
    assert check(tmp_path, GOOD) == (0, ["every link leads somewhere"])


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ('<a href="three/">three</a>', "index.html: three/ leads nowhere"),
        ('<img src="figures/none.svg">', "index.html: figures/none.svg leads nowhere"),
        ('<a href="two/#third">third</a>', "index.html: two/#third: the page has no such anchor"),
        ('<a href="#none">none</a>', "index.html: #none: the page has no such anchor"),
        ('<script src="https://example.org/a.js"></script>', "index.html: fetches https://example.org/a.js"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "index.html: fetches //example.org/a.css"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, fault: str, words: str) -> None:
    status, lines = check(tmp_path, GOOD + fault)
    assert status == 1
    assert len(lines) == 1 and lines[0].startswith(words)


def test_a_text_of_links_is_followed_too(tmp_path: Path) -> None:
    (tmp_path / "two.md").write_text("# Two\n\n[one](../index.html), [gone](gone.md#at)\n\n```python\nx[0](y)\n```\n")
    (tmp_path / "llms.txt").write_text("- [Two](two.md): a page\n- [Three](three.md)\n- [out](https://example.org)\n")
    status, lines = check(tmp_path, GOOD)
    assert status == 1
    assert lines == ["llms.txt: three.md leads nowhere", "two.md: ../index.html leads nowhere",
                     "two.md: gone.md#at leads nowhere"]  # fmt: skip
