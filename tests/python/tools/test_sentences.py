"""The check of sentences finds each planted one, in every kind of file, and no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[3] / "tests/check_sentences.py"

WRONG = {
    "comment.cpp": "/// Of one cast.\nint x;\n",
    "trailing.hpp": "int x;  ///< of the axis\n",
    "second_line.cpp": "// The first sentence ends on this\n// line. Those of another follow.\n",
    "block.cu": "/** The same of a vector. */\n",
    "message.cpp": 'fail("a word {}. "\n     "What follows is lost");\n',
    "raw.cpp": 'auto text = R"doc(Sum.\n\nThose of a row are added.)doc";\n',
    "docstring.py": 'def f():\n    """Of a file."""\n',
    "later.py": 'def f():\n    """A sum.\n\n    What is left is dropped.\n    """\n',
    "note.py": "x = 1  # of a cast\n",
    "format.py": 'x = f"Of {y} shares"\n',
    "page.md": "A page.\n\nOf several ranks the counts are added up.\n",
    "cell.md": "| option | |\n|---|---|\n| `--seed` | of the random bits |\n",
    "point.md": "- Those that are left.\n",
    "script.sh": "#!/bin/sh\n# Of a stage: its output.\n",
    "tool": "#!/usr/bin/env python3\n# of a run\n",
    "verdict.toml": 'verdict = "Of 4 bits: NVFP4"\n',
    "notebook.ipynb": json.dumps({"cells": [{"cell_type": "markdown", "source": ["What lies left is zero."]}]}),
}
RIGHT = {
    "comment.cpp": '// Offsets of the rows.\nint x;  // what-if counts\nauto url = "http://x";  // a sum\n',
    "continued.hpp": "int x;  ///< sum over the rows\n        ///< of a matrix\n",
    "message.cpp": 'fail("of {} ranks");\nconst char quote = \'"\';\n// a comment\n',
    "question.md": "## What the command shows\n\nWhat is FP16? A format.\n\n```text\nOf 3 steps 2.\n```\n",
    "strings.py": '"""A module."""\nWORDS = ["of", "those"]\nx = "%s of %s"\n',
    "experiments/recorded/report.md": "Of old.\n",
}


def judge(root: Path, files: dict[str, str], *, tracked: bool = True) -> subprocess.CompletedProcess[str]:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    if tracked:
        subprocess.run(["git", "add", "."], cwd=root, check=True)
    return subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)


@pytest.mark.parametrize("name", WRONG)
def test_a_planted_sentence_fails(name: str, tmp_path: Path) -> None:
    done = judge(tmp_path, {name: WRONG[name]})
    assert done.returncode == 1
    *found, count = done.stdout.splitlines()
    assert [line.split(":")[0] for line in found] == [name]
    assert count == "1 sentence begins with Of, Those, The same of or What"


def test_the_line_is_that_of_the_comment(tmp_path: Path) -> None:
    done = judge(tmp_path, {"x.cpp": "int a;\n\n// A sum. Of x it is\n// the least.\n", "y.py": '"""A."""\n\n# of y\n'})
    assert [line.rsplit(":", 1)[0] for line in done.stdout.splitlines()[:2]] == ["x.cpp:3", "y.py:3"]


def test_other_sentences_pass(tmp_path: Path) -> None:
    done = judge(tmp_path, RIGHT)
    assert (done.returncode, done.stdout) == (0, "0 sentences begin with Of, Those, The same of or What\n")


def test_only_tracked_files_count(tmp_path: Path) -> None:
    assert judge(tmp_path, WRONG, tracked=False).returncode == 0


def test_a_folder_is_needed() -> None:
    done = subprocess.run([sys.executable, CHECK, "/nonexistent"], capture_output=True, text=True)
    assert done.returncode == 2 and "check_sentences.py ROOT" in done.stderr
