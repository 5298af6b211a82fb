"""Sources of the tests: their folders on the path, their tables of models, and names of their lines that stay."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from collections.abc import Callable
from functools import cache
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
_LINE = re.compile(r"\b(\w+\.py):(\d+)")


def add_test_folders() -> None:
    """Behind all else on the path, so that no library is hidden."""
    folders = {str(path.parent) for path in TESTS.rglob("*.py") if path.parent != Path(__file__).parent}
    sys.path += sorted(folders - set(sys.path))


def modules_of_victims() -> list[ModuleType]:
    """Every file of models with a fault."""
    files = {*TESTS.rglob("*victims.py"), *TESTS.rglob("victims/*.py")}
    return [importlib.import_module(path.stem) for path in sorted(files, key=lambda path: path.stem)]


def victims() -> dict[str, Callable[[], Any]]:
    """By "FILE.NAME": the functions that make a model with a fault, its step and the options of `diagnose`."""
    return {
        f"{module.__name__}.{name}": function
        for module in modules_of_victims()
        for name, function in vars(module).items()
        if _makes_a_victim(function, module) and not name.startswith("_")
    }


def _makes_a_victim(function: Any, module: ModuleType) -> bool:
    if not callable(function) or getattr(function, "__module__", "") != module.__name__:
        return False
    if getattr(function, "__annotations__", {}).get("return") != "Victim":
        return False
    return all(each.default is not Parameter.empty for each in signature(function).parameters.values())


def stable(text: str) -> str:
    """A text whose lines of tests are counted from their function: another model above moves none of them."""
    return _LINE.sub(lambda match: _line(match[1], int(match[2])), text)


def _line(file: str, number: int) -> str:
    for first, last, name in _definitions(file):
        if first <= number <= last:
            return f"{file}:{name}+{number - first}"
    return f"{file}:{number}"


@cache
def _definitions(file: str) -> list[tuple[int, int, str]]:
    """First line, last line and name of each function and class of a test's file; none of other files."""
    paths = sorted(TESTS.rglob(file))
    if not paths:
        return []
    tree = ast.parse(paths[0].read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [(node.lineno, node.end_lineno or node.lineno, node.name) for node in tree.body if isinstance(node, kinds)]
