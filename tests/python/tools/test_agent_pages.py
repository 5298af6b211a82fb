"""SKILL.md and llms.txt: what they name is there, every call of the skill runs, and both are made from the docs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from copied_tree import ROOT
from doc_blocks import read_blocks
from halfscope.schemas import schema
from recording.llms_file import first_sentence, llms_text
from recording.pages import Sources, refreshed, stale_pages
from recording.quoted_tables import quoted_table
from recording.schema_fields import schema_fields
from recording.source_tree import RECORDED

SKILL = ROOT / "docs/SKILL.md"
LINE = re.compile(r"- \[(?P<title>[^\]]+)\]\((?P<page>[^)]+)\)(?:: (?P<sentence>.+))?")


def test_the_skill_opens_with_its_name_and_what_it_is_for() -> None:
    opening = re.match(r"---\nname: ([a-z-]+)\ndescription: ([^\n]+)\n---\n", SKILL.read_text())
    assert opening is not None and opening[1] == "halfscope"
    assert 100 < len(opening[2]) <= 1024 and "Use it when" in opening[2]


def calls() -> list[str]:
    """Calls of the table of questions."""
    rows = quoted_table("SKILL.md", "question").splitlines()[2:]
    return [call for row in rows for call in re.findall(r"`([^`]+)`", row.split("|")[2])]


def test_every_call_of_the_skill_stands_in_a_block_that_tests_run() -> None:
    blocks = [block for block in read_blocks(SKILL) if block.language != "text"]
    assert [block.place for block in blocks if block.reason is not None] == []
    code = "".join(block.code for block in blocks)
    assert len(calls()) >= 9
    for call in calls():
        words = call.split()
        name = re.split(r"[(.]", call)[0] if "(" in call else ""
        if call.startswith(("halfscope ", "python -m halfscope ")):
            stem = " ".join(words[: words.index("--json")][:4])
            assert re.search(rf"^{re.escape(stem.split(' --')[0])}", code, re.MULTILINE), call
        else:
            last = re.findall(r"[A-Za-z_]+(?=\()", call)[-1] if name else words[0]
            assert re.search(rf"\b{last}\(", code), call


@pytest.mark.parametrize("name", ["report", "replay", "analyze", "formats", "updates"])
def test_the_skill_has_the_keys_of_each_schema(name: str) -> None:
    text = SKILL.read_text()
    (asked,) = re.findall(rf"<!-- generated: keys {name} ([^\n]+) -->", text)
    own = schema(name)
    assert "verdict" in asked.split()
    for key in asked.split():
        assert f"| `{key}` | " in text
    assert own["properties"]["verdict"]["description"] in text


def test_llms_lists_every_page_once_and_nothing_else() -> None:
    text = (ROOT / "docs/llms.txt").read_text()
    assert text.startswith("# halfscope\n\n> halfscope shows ")
    listed = [match["page"] for match in LINE.finditer(text)]
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(listed) == sorted(pages)
    assert all(match["sentence"] is None or len(match["sentence"]) > 15 for match in LINE.finditer(text))
    lines = [line for line in text.splitlines() if line and not line.startswith(("#", ">", "Links "))]
    assert [line for line in lines if not LINE.fullmatch(line)] == []


def test_a_page_that_changes_makes_llms_stale(tmp_path: Path) -> None:
    for name in ("README.md", "mkdocs.yml"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "docs/start").mkdir(parents=True)
    page = tmp_path / "docs/start/which-loss-scale.md"
    page.write_text("# A title\n\n![figure](x.svg)\n\nOne of [two](b.md) sentences. Another.\n")
    text = llms_text(tmp_path)
    assert "## Start\n\n- [A title](start/which-loss-scale.md): One of two sentences.\n" in text
    assert "## Guides" not in text
    (tmp_path / "docs/llms.txt").write_text(text)
    (tmp_path / "README.md").write_text("halfscope shows it.\n")
    (tmp_path / "docs/llms.txt").write_text(llms_text(tmp_path))
    assert stale_pages(Sources(RECORDED), tmp_path) == {}
    page.write_text("# A title\n\nOther words.\n")
    stale = stale_pages(Sources(RECORDED), tmp_path)
    assert list(stale) == [tmp_path / "docs/llms.txt"] and "Other words." in stale[tmp_path / "docs/llms.txt"]


@pytest.mark.parametrize(
    ("page", "sentence"),
    [
        ("# T\n\nAs in Fig. 2 of X et al. it is. More.\n", "As in Fig. 2 of X et al. it is."),
        ("---\nname: x\n---\n\n# T\n\n**Bold** `code`:\n\n```sh\nls\n```\n", "Bold `code`"),
        ("# T\n\n| a |\n|---|\n\n- item\n", ""),
        ("<!-- a\nb -->\n\nIt is\nso. Then.\n", "It is so."),
    ],
)
def test_first_sentences(page: str, sentence: str) -> None:
    assert first_sentence(page) == sentence


def test_wrong_parts_are_named() -> None:
    for part, says in (
        ("keys report findings[].colour", r"the schema 'report' has no key 'findings\[\].colour'; one of "),
        ("keys calc", "no schema is called 'calc'"),
        ("quoted guides/check.md weather", "docs/guides/check.md has no table whose first column is 'weather'"),
    ):
        with pytest.raises(ValueError, match=says):
            refreshed(f"<!-- generated: {part} -->\n<!-- end of generated -->", Sources(RECORDED))


def test_a_quoted_table_has_its_links_as_words(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("| a | b |\n|---|---|\n| [x](y.md) | z |\n\n| c |\n")
    assert quoted_table("a.md", "a", tmp_path) == "| a | b |\n|---|---|\n| x | z |"
    assert schema_fields("updates").splitlines()[2] == "| `format` | format of the weights |"
