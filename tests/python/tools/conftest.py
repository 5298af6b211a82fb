"""Fixtures of the tests of the shell tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from copied_tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.fixture
def tested(tree: Tree) -> Tree:
    """A tree with a Python test of each kind, of which ctest, nvcc and the tools that build are stand-ins too."""
    (tree.folder / "tests/python").mkdir(parents=True)
    tests = "import pytest\ndef test_one(): pass\n@pytest.mark.slow\ndef test_two(): pass\n"
    tests += "@pytest.mark.browser\ndef test_three(): pass\n"
    (tree.folder / "tests/python/test_one.py").write_text(tests)
    (tree.folder / "tests/slurm").mkdir()
    sweep = "import pytest\n@pytest.mark.slurm\ndef test_sweep(): pass\n"
    (tree.folder / "tests/slurm/test_sweep.py").write_text(sweep)
    tree.command("ctest", 'echo "ctest $*" >>"$asked"')
    tree.command("nvcc", "")
    for tool in ("wheel", "site"):
        tree.script(tree.folder / "tools" / tool, f'echo "{tool} $*" >>"$asked"')
    return tree
