"""A release's files name one version, and its workflows run tools that exist."""

from __future__ import annotations

import json
import re

import pytest

from recording.source_tree import ROOT

VERSION = re.search(r"^project\(halfscope VERSION ([0-9.]+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def test_every_file_names_the_version_of_the_build() -> None:
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == VERSION
    assert json.loads((ROOT / ".zenodo.json").read_text())["version"] == VERSION
    newest = re.search(r"^## \[([0-9.]+)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] == VERSION
    assert newest[2] == "unreleased" or re.fullmatch(r"\d{4}-\d{2}-\d{2}", newest[2])


def test_the_changelog_is_a_page() -> None:
    assert len((ROOT / "CHANGELOG.md").read_text().splitlines()) <= 100


@pytest.mark.parametrize("file", [*WORKFLOWS, ROOT / "Containerfile"], ids=lambda path: path.name)
def test_tools_of_workflows_and_the_container_exist(file) -> None:
    text = file.read_text()
    for tool, options in re.findall(r"\b(tools/[a-z_-]+)((?: --[a-z]+)*)", re.sub(r"^ *#.*$", "", text, flags=re.M)):
        found = list(ROOT.glob(f"{tool}*"))
        assert found, f"{file.name}: {tool}"
        if options:
            help_text = (ROOT / tool).read_text().partition("set -euo")[0]
            assert [option for option in options.split() if option not in help_text] == []
    assert WORKFLOWS
