"""Attributes of the engine's classes in halfscope.torch: only the module of a class writes them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from recording.source_tree import ROOT
from test_imports import PREFIX, modules, room_of

ENGINE = ("emulate", "events", "steps", "watch")  # rooms whose classes are the engine's
RECORDS = ("fault", "made", "parent", "seen", "session")  # variables that hold records of other rooms


def is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def written(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Attributes that are assigned or deleted, in loops and with-blocks too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node


def attributes(tree: ast.AST) -> set[str]:
    """Attributes of the classes of a module: of their bodies, and those that methods give `self`."""
    found = set()
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef):
            found |= {node.attr for node in written(owner) if is_own(node.value)}
            for line in owner.body:
                targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def breaches(root: Path, rooms: tuple[str, ...] = ENGINE) -> list[str]:
    """Assignments to an attribute that a class of the engine has, and no class of the module's own.

    In another room a class of that room may have an attribute of the same name.
    """
    trees = {name: ast.parse(path.read_text()) for name, path in modules(root).items() if name.startswith(PREFIX)}
    owners: dict[str, set[str]] = defaultdict(set)
    others: dict[str, set[str]] = defaultdict(set)  # by room
    for name, tree in trees.items():
        for attribute in attributes(tree):
            if room_of(name) in rooms:
                owners[attribute].add(name)
            else:
                others[room_of(name)].add(attribute)
    return [
        f"{name}:{node.lineno} writes {ast.unparse(node)}, of {', '.join(sorted(owners[node.attr]))}"
        for name, tree in trees.items()
        for node in written(tree)
        if not is_own(node.value) and ast.unparse(node.value) not in RECORDS
        if owners[node.attr] and node.attr not in attributes(tree) | others[room_of(name)]
    ]


def test_no_attribute_of_the_engine_is_written_from_another_module() -> None:
    assert breaches(ROOT / "lib" / "python") == []


@pytest.mark.parametrize(
    ("source", "is_breach"),
    [
        ("def f(step):\n    step.plan = None", True),
        ("def f(step):\n    step.other.plan += 1", True),
        ("def f(step):\n    a, step.plan = 1, 2", True),
        ("def f(step):\n    del step.plan", True),
        ("class Other:\n    def f(self, step):\n        for step.counts in []: pass", True),
        ("def f(step):\n    return step.plan", False),
        ("def f(step):\n    step.elsewhere = 1", False),
        ("class Other:\n    plan: int = 0\ndef f(other):\n    other.plan = 1", False),
    ],
)
def test_planted_writes_are_found(source: str, is_breach: bool, tmp_path: Path) -> None:
    folder = tmp_path / "halfscope" / "torch" / "emulate"
    folder.mkdir(parents=True)
    step = "class Step:\n    counts: int = 0\n    def __init__(self):\n        self.plan = None\n"
    for name, text in {"step.py": step, "other.py": source}.items():
        (folder / name).write_text(text)
    assert bool(breaches(tmp_path)) is is_breach
