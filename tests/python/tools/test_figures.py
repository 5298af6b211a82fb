"""tools/figures: where it looks for results."""

from __future__ import annotations

from copied_tree import Tree


def test_figures_takes_folders_from_where_it_is_called(tree: Tree) -> None:
    result = tree.run("figures", "master-copy", cwd=tree.folder / "ready", draws="yes")
    assert result.stdout == f"{tree.folder}/ready/master-copy/report.html\n"
    empty = tree.run("figures", "commands", draws="yes")
    assert empty.returncode == 2 and "no results here" in empty.stderr
