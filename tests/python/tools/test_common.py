"""Common parts of the shell tools: help, unknown options, missing packages, an old cmake."""

from __future__ import annotations

from pathlib import Path

import pytest

from copied_tree import Tree, without

TOOLS = ("reproduce", "test", "figures", "notebooks", "bench", "loopback-slurm")


@pytest.mark.parametrize("tool", TOOLS)
def test_help(tree: Tree, tool: str) -> None:
    # From elsewhere, since a tool changes to the root before it reads its own help.
    result = tree.run(f"../tools/{tool}", "--help", cwd=Path("/"))
    assert result.returncode == 0 and f"tools/{tool}" in result.stdout
    assert tree.log() == []


@pytest.mark.parametrize("tool", TOOLS)
def test_unknown_option(tree: Tree, tool: str) -> None:
    result = tree.run(tool, "--wrong", "--option")
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1
    assert tree.log() == []


def test_missing_packages_are_installed_once_and_named(tree: Tree) -> None:
    result = tree.run("reproduce", "--out", "out", missing="ninja-build zlib1g-dev")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[0] == "== installing ninja-build zlib1g-dev"
    installs = [line for line in tree.log() if line.startswith("apt-get install")]
    assert len(installs) == 1 and installs[0].endswith(" ninja-build zlib1g-dev")


def test_no_install(tree: Tree) -> None:
    result = tree.run("reproduce", "--no-install", missing="ninja-build")
    assert result.returncode == 2 and "missing packages: ninja-build" in result.stderr
    assert tree.log() == []


def test_not_debian(tree: Tree) -> None:
    path = without(tree, "apt-get")
    result = tree.run("reproduce", PATH=path)
    assert result.returncode == 2
    for package in ("g++", "libeigen3-dev", "dataset-fashion-mnist", "--no-install"):
        assert package in result.stderr
    assert tree.log() == []
    assert tree.run("reproduce", "--no-install", "--out", "out", PATH=path).returncode == 0


def test_old_cmake(tree: Tree) -> None:
    tree.command("cmake", 'echo "cmake version 3.22.1"')
    result = tree.run("reproduce")
    assert result.returncode == 2 and "cmake 3.24 or newer is needed, found 3.22.1" in result.stderr
