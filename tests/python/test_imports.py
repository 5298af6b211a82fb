"""Imports of the Python package: no circle, and the rooms of halfscope.torch in one order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from recording.source_tree import ROOT

# Rooms that a room may import besides itself; a file at the top is a room of its name.
ROOMS = {
    "private": set(),
    "words": set(),
    "wrapping": set(),
    "weak_hooks": set(),
    "split_sums": set(),
    "tensors": set(),
    "operations": {"tensors"},
    "device": {"tensors"},
    "grad_scaler": {"device"},
    "dump": {"tensors"},
    "policy": {"operations", "split_sums"},
    "events": {"operations", "policy"},
    "counts": {"device", "tensors", "words"},
    "steps": {"counts", "weak_hooks", "words", "wrapping"},
    "findings": {"device", "events", "operations", "tensors"},
    "search": {"counts", "events", "operations", "policy", "steps"},
    "emulate": {
        "counts", "device", "events", "findings", "operations", "policy", "search", "split_sums", "steps", "tensors",
        "weak_hooks", "words", "wrapping",
    },
    "watch": {"counts", "device", "events", "findings", "operations", "steps", "tensors", "weak_hooks"},
    "lint": {"findings", "policy", "steps", "tensors"},
    "diagnose": {
        "counts", "device", "doctor", "emulate", "events", "findings", "operations", "policy", "steps", "tensors",
    },
    "check": {
        "counts", "doctor", "events", "findings", "lint", "steps", "tensors", "watch", "weak_hooks", "words",
        "wrapping",
    },
    "trainers": {"check", "device", "doctor", "watch"},
    "doctor": {"events", "findings", "operations", "rescale", "steps", "tensors", "words"},
    "sensitivity": {"device", "emulate", "events", "operations", "steps", "tensors", "words"},
    "rescale": {"emulate", "events", "operations", "steps", "tensors", "words"},
    "gradient_errors": {"counts", "emulate", "policy", "search", "sensitivity", "steps", "words"},
    "one_block": {"check", "doctor", "tensors", "weak_hooks", "words"},
    "ablate": {"emulate", "grad_scaler", "policy", "search", "steps", "watch"},
}  # fmt: skip
COMMON = {"private"}  # every room may import these
PREFIX = "halfscope.torch."


def modules(root: Path) -> dict[str, Path]:
    names = {".".join(path.relative_to(root).with_suffix("").parts): path for path in root.glob("halfscope/**/*.py")}
    return {name.removesuffix(".__init__"): path for name, path in names.items()}


def imported(node: ast.AST) -> Iterator[str]:
    """Names that a module imports, inside of functions too, but for types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        if isinstance(child, ast.ImportFrom) and child.module:
            for alias in child.names:
                yield from (f"{child.module}.{alias.name}", child.module)
        yield from imported(child)


def arrows(root: Path) -> dict[str, set[str]]:
    """By module, the modules that it imports; of a name in a package the module, not the package."""
    found, every = {}, modules(root)
    for name, path in every.items():
        named = [each for each in imported(ast.parse(path.read_text())) if each in every and each != name]
        found[name] = {each for each in named if not any(other.startswith(f"{each}.") for other in named)}
    return found


def circles(graph: dict[str, set[str]]) -> list[str]:
    """Takes away what imports nothing of the rest, again and again; what is left is in a circle or imports one."""
    left = {name: set(targets) for name, targets in graph.items()}
    while True:
        free = [name for name, targets in left.items() if not targets & left.keys()]
        if not free:
            return sorted(left)
        for name in free:
            del left[name]


def room_of(name: str) -> str:
    return name.removeprefix(PREFIX).partition(".")[0]


def breaches(graph: dict[str, set[str]]) -> list[str]:
    return [
        f"{name} imports {target}"
        for name, targets in graph.items()
        for target in sorted(targets)
        if name.startswith(PREFIX) and target.startswith(PREFIX)
        if room_of(target) != room_of(name) and room_of(target) not in ROOMS.get(room_of(name), set()) | COMMON
    ]


def test_no_module_imports_itself_by_way_of_others() -> None:
    assert circles(arrows(ROOT / "lib" / "python")) == []


def test_rooms_import_what_they_may() -> None:
    graph = arrows(ROOT / "lib" / "python")
    assert breaches(graph) == []
    used = {(room_of(name), room_of(target)) for name, targets in graph.items() for target in targets
            if name.startswith(PREFIX) and target.startswith(PREFIX)}  # fmt: skip
    assert {(room, other) for room, others in ROOMS.items() for other in others} <= used  # no arrow that nobody needs
    assert {room_of(name) for name in graph if name.startswith(PREFIX)} == ROOMS.keys()


def test_the_order_of_rooms_has_no_circle() -> None:
    assert circles(ROOMS) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("from halfscope.torch.b import x", "circle"),
        ("def f():\n    import halfscope.torch.b", "circle"),
        ("from halfscope.torch import b", "circle"),
        ("from halfscope.torch.emulate.mode import x", "breach"),
    ],
)
def test_planted_imports_are_found(source: str, fault: str, tmp_path: Path) -> None:
    folder = tmp_path / "halfscope" / "torch"
    (folder / "emulate").mkdir(parents=True)
    for path, text in {
        "__init__.py": "", "torch/__init__.py": "", "torch/emulate/__init__.py": "", "torch/emulate/mode.py": "",
        "torch/tensors.py": source, "torch/b.py": "from halfscope.torch.tensors import y",
    }.items():  # fmt: skip
        (tmp_path / "halfscope" / path).write_text(text)
    graph = arrows(tmp_path)
    found = circles(graph) if fault == "circle" else breaches(graph)
    assert any("tensors" in each for each in found)
