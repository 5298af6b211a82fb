"""The check of figures finds each that was typed into a page, and none that has a source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[3] / "tests/check_figures.py"
LIST = "tests/figures.txt"

TYPED = {
    "a time": "It takes 5.6 minutes.",
    "a time in words": "It takes half an hour.",
    "a time in a comment": "<!-- not run: ten minutes of training -->",
    "a rate": "The kernel reaches 2467 GB/s.",
    "a size": "It takes 819 MB.",
    "a ratio": "A step takes 1.17 times as long.",
    "a share": "Here\n59 % are flushed.",
    "a range": "It misses 5.9 to 8.8 % of it.",
    "a count": "It was right in 485 of 504 trainings.",
    "a count of things": "It has 28 networks.",
    "a count in words": "It compares sixteen rules.",
    "a cell": "| cost | 13 % |\n|---|---|\n",
    "a sentence behind a citation": "Table 1 says so. Ours loses 5 %.",
    "output that nothing compares": "```text\nlost 5 %\n```\n",
    "a comment of a command": "```sh\nrun 5 %    # for 5 minutes\n```\n",
    "text behind a value": "It loses <!-- value: ratio a b c -->5 %<!-- end --> or 7 %.",
}
SOURCED = {
    "a generated part": "<!-- generated: arms one -->\n\nIt takes 5 s.\n\n<!-- end of generated -->",
    "a value": "It loses <!-- value: ratio a b c -->5 %<!-- end -->.",
    "a compared part": "<!-- compared: tests/test_one.py -->\n| 5 % |\n<!-- end of compared -->",
    "code": "```sh\nrun '5 %'    # it\n```\n\n    run    # 5 minutes\n\nand `--max-error 5 %`\nand `a\nb 5 %`.",
    "Python": "```python\nx = 5  # 5 minutes\n```\n",
    "output": "<!-- output -->\n```text\nlost 5 %\n```\n",
    "output that a test compares": "<!-- compared: tests/test_one.py -->\n```text\nlost 5 %\n```\n",
    "a citation": "80 % (Fig. 2a). Kahan et al. lose 5 %.\n\n| Quartet II (2026) | 5 % |\n\nIn 2510.26788 5 %.",
    "no unit": "A scale of 2^16 fits 7 tensors; step 5 of them. A factor of 2 of 3.\n",
    "an address": "[page](https://example.org/5%) and 2^10 times.",
}


def judge(root: Path, page: str, listed: str = "", source: str = "") -> subprocess.CompletedProcess[str]:
    files = {"docs/page.md": page, LIST: listed, "lib/limits.hpp": source, "tests/test_one.py": "# page.md\n"}
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    return subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True)


@pytest.mark.parametrize("page", TYPED.values(), ids=TYPED)
def test_a_figure_typed_by_hand_fails(page: str, tmp_path: Path) -> None:
    done = judge(tmp_path, page)
    assert done.returncode == 1, done.stdout
    found, count = done.stdout.splitlines()
    assert found.startswith("docs/page.md:") and count == "1 figure typed by hand"


@pytest.mark.parametrize("page", SOURCED.values(), ids=SOURCED)
def test_a_figure_with_a_source_passes(page: str, tmp_path: Path) -> None:
    done = judge(tmp_path, page)
    assert (done.returncode, done.stdout) == (0, "0 figures typed by hand\n")


def test_the_line_is_that_of_the_sentence(tmp_path: Path) -> None:
    done = judge(tmp_path, "# T\n\n```sh\ncode\n```\n\nA. One\ntakes 5 s.\n\n- A point\n  of 7 %.\n")
    assert [line.split(": ")[:2] for line in done.stdout.splitlines()[:2]] == [
        ["docs/page.md:7", "5 s"], ["docs/page.md:10", "7 %"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("page", "code"),
    [
        ("It is harm from 5 % on.", "constexpr double harmful = 0.05;"),
        ("It is harm from 5 % on.", "t_quantile(0.975)"),
        ("A lock expires after ten minutes.", "constexpr int lock_expires_after = 600;"),
        ("A mean over 256 times as many.", "loss_weight = 0.00390625"),
        ("At most 4 times.", "MOST = 4.0"),
    ],
)
def test_a_limit_is_held_against_its_line_of_code(page: str, code: str, tmp_path: Path) -> None:
    figure = next(figure for figure in ("5 % on", "ten minutes", "256 times", "4 times") if figure in page)
    entry = f"# comment\n\ndocs/page.md | {figure} | lib/limits.hpp | {code}\n"
    assert judge(tmp_path, page, entry, f"// limits\n{code}\n").returncode == 0
    assert judge(tmp_path, page, entry.replace("docs/page.md", "*"), code).returncode == 0
    for changed, source, says in (
        (entry, "// another line\n", "the file has no such line"),
        (entry.replace("limits.hpp", "none.hpp"), code, "no such file"),
        (entry.replace(code, "other = 77"), f"{code}\nother = 77\n", "the line has another number"),
    ):
        done = judge(tmp_path, page, changed, source)
        assert done.returncode == 1 and says in done.stdout
    done = judge(tmp_path, "Nothing.\n", entry, code)
    assert done.returncode == 1 and "no page has this figure" in done.stdout
    other = entry.replace("docs/page.md", "docs/other.md")
    assert judge(tmp_path, page, other, code).stdout.splitlines()[-1] == "2 figures typed by hand"


def test_a_part_that_is_compared_names_a_test_that_names_the_page(tmp_path: Path) -> None:
    for test in ("tests/none.py", "lib/limits.hpp"):
        done = judge(tmp_path, f"<!-- compared: {test} -->\n```text\n5 %\n```\n")
        assert done.returncode == 1 and f"docs/page.md: compared: {test}: no such file" in done.stdout


def test_a_folder_is_needed() -> None:
    done = subprocess.run([sys.executable, CHECK, "/nonexistent"], capture_output=True, text=True)
    assert done.returncode == 2 and "check_figures.py ROOT" in done.stderr


def test_the_pages_of_this_tree_have_no_figure_without_a_source() -> None:
    done = subprocess.run([sys.executable, CHECK, CHECK.parents[1]], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "0 figures typed by hand\n")
